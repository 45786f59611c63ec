#include "tests/optimized/cuda/emulated_devices.h"

#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/row_kernels.cuh"
#include "tests/emulator/machine/emulate.h"
#include "tests/optimized/cuda/hopper/backward_hopper_kernels.h"
#include "tests/optimized/cuda/hopper/hopper_kernels.h"
#include "tests/optimized/cuda/portable/portable_kernels.h"
#include "tests/optimized/ring/kernels_on_streams.h"

namespace ringlab::cuda {
namespace {

constexpr std::uint64_t kSeed = 5;

template <class Code>
void on_rows(const Code& code) {
  emulator::emulate({.blocks = 2, .threads = kRowThreads, .seed = kSeed}, code);
}

template <class Element>
void hopper(const ForwardCall<Element>& call, Stream) {
  emulated_forward_hopper(call, {.blocks = 2, .seed = kSeed});
}
template <class Element>
void portable(const ForwardCall<Element>& call, Stream) {
  portable_kernels<Element>().forward(call, kSeed);
}

template <class Element>
void hopper_backward(const BackwardCall<Element>& call, Stream) {
  emulated_backward_hopper(call, kSeed);
}
template <class Element>
void portable_backward(const BackwardCall<Element>& call, Stream) {
  portable_kernels<Element>().backward(call, kSeed);
}

}  // namespace

template <class Element>
ring::DeviceKernels<Element> emulated_device_kernels(EmulatedForward forward, const Shape& shape) {
  const auto head_dim = static_cast<std::int32_t>(shape.head_dim);
  const auto v_dim = static_cast<std::int32_t>(shape.v_dim);
  const bool is_hopper = forward == EmulatedForward::hopper;
  return ring::on_streams<Element>(
      {.why_not = why_not_portable,
       .forward_tile_queries = is_hopper ? forward_hopper_tile_queries(head_dim, v_dim)
                                         : forward_portable_tile_queries(),
       .backward_tile_queries = backward_portable_tile_queries(head_dim, v_dim),
       .forward = is_hopper ? &hopper<Element> : &portable<Element>,
       .backward = is_hopper && takes_backward_hopper(head_dim, v_dim)
                       ? &hopper_backward<Element>
                       : &portable_backward<Element>,
       .clear_states = [](const ClearStates& call,
                          Stream) { on_rows([&] { clear_states_block(call); }); },
       .finish_rows = [](const FinishRows<Element>& call,
                         Stream) { on_rows([&] { finish_rows_block(call); }); },
       .delta_rows = [](const DeltaRows<Element>& call,
                        Stream) { on_rows([&] { delta_rows_block(call); }); },
       .scale_to = [](const ScaleTo<Element>& call,
                      Stream) { on_rows([&] { scale_to_block(call); }); }});
}
template ring::DeviceKernels<Half> emulated_device_kernels(EmulatedForward, const Shape&);
template ring::DeviceKernels<BFloat16> emulated_device_kernels(EmulatedForward, const Shape&);

}  // namespace ringlab::cuda
