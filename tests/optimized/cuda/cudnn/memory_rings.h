// Rings of attention by graphs where there is neither a device nor cuDNN: devices are plain memory,
// and row kernels are emulated.
#pragma once

#include "optimized/cuda/row_kernels.cuh"
#include "optimized/ring/engine.h"
#include "optimized/ring/padded_channels.h"
#include "optimized/ring/vendor/cudnn_in_rings.h"
#include "optimized/ring/whole_tensors.h"
#include "tests/emulator/machine/emulate.h"

namespace ringlab::cudnn {

template <class Code>
void on_rows(const Code& code) {
  cuda::emulator::emulate({.blocks = 2, .threads = cuda::kRowThreads, .seed = 7}, code);
}

template <class Element>
ring::DeviceKernels<Element> kernels_on_memory(const SdpaRunner& runner) {
  using cuda::Stream;
  return ring::kernels_around<Element>(
      runner, {.clear_states = [](const cuda::ClearStates& call,
                                  Stream) { on_rows([&] { cuda::clear_states_block(call); }); },
               .merge_rows = [](const cuda::MergeRows<Element>& call,
                                Stream) { on_rows([&] { cuda::merge_rows_block(call); }); },
               .finish_rows = [](const cuda::FinishRows<Element>& call,
                                 Stream) { on_rows([&] { cuda::finish_rows_block(call); }); },
               .add_rows = [](const cuda::AddRows<Element>& call,
                              Stream) { on_rows([&] { cuda::add_rows_block(call); }); },
               .pack_rows = [](const cuda::PackRows& call,
                               Stream) { on_rows([&] { cuda::pack_rows_block(call); }); },
               .scale_to = [](const cuda::ScaleTo<Element>& call,
                              Stream) { on_rows([&] { cuda::scale_to_block(call); }); }});
}

/// What OnDevices(AttentionOf::cudnn) does. `run(problem, ends)` runs the ring for ends of either
/// type.
template <class Run>
RunResult run_padded_on_memory(const AttentionInput& input, const Run& run) {
  RunResult result = ring::empty_result(input);
  const Problem padded = ring::with_padded_channels(input.problem);
  const auto run_as = [&]<class Element>(Element) {
    run(padded, ring::padded_ends(input.problem.shape, ring::whole_ends<Element>(input, result)),
        result);
  };
  input.problem.dtype == DType::f16 ? run_as(Half{}) : run_as(BFloat16{});
  return result;
}

/// On as many devices as there are ranks.
inline RunResult run_on_memory(const AttentionInput& input, const RunOptions& options,
                               const SdpaRunner& runner) {
  return run_padded_on_memory(
      input, [&]<class Element>(const Problem& padded, const ring::Ends<Element>& ends,
                                RunResult& result) {
        const ring::OnStreams<Element> place(kernels_on_memory<Element>(runner),
                                             {.gradients = ring::Repeatable::same_bits});
        ring::take_summary(ring::Engine().run(padded, options, ends, place), result);
      });
}

}  // namespace ringlab::cudnn
