#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/kernel_profile.h"
#include "optimized/ring/closed_forms.h"
#include "reference/core/wire_profile.h"

namespace ringlab::ring {

NumericsProfile engine_profile(const Problem& problem, const RunOptions& options) {
  const Layout keys = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  std::int64_t tiles = 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    tiles += cpu::key_blocks(keys.positions(owner), options.tile_keys);
  }
  return wire_profile(cpu::kernel_profile(problem.dtype, tiles), options.wire, problem.dtype);
}

}  // namespace ringlab::ring
