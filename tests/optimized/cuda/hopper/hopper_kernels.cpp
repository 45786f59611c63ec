#include "tests/optimized/cuda/hopper/hopper_kernels.h"

#include "optimized/cuda/hopper/forward_hopper_shapes.h"
#include "tests/emulator/machine/emulate.h"
#include "tests/emulator/machine/tensor_map.h"

namespace ringlab::cuda {
#include "tests/optimized/cuda/hopper/hopper_kernels-inl.h"

template <class Element>
void emulated_forward_hopper(const ForwardCall<Element>& call, const EmulatedGrid& grid) {
  with_hopper_tile(call, [&](auto tile) { emulate_hopper_tile<decltype(tile)>(call, grid); });
}
template void emulated_forward_hopper(const ForwardCall<Half>&, const EmulatedGrid&);
template void emulated_forward_hopper(const ForwardCall<BFloat16>&, const EmulatedGrid&);

void emulated_tactical_hopper(const ForwardCall<BFloat16>& call, const EmulatedGrid& grid) {
  emulate_hopper_tile<TacticalHopperTile<BFloat16>>(call, grid);
}

void emulated_paired_hopper(const ForwardCall<BFloat16>& call, const EmulatedGrid& grid) {
  emulate_hopper_tile<PairedHopperTile<BFloat16>>(call, grid);
}

}  // namespace ringlab::cuda
