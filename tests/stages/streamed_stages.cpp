#include "tests/stages/streamed_stages.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "optimized/cuda/device.h"
#include "stages/10_balanced_ring/on_streams.h"
#include "stages/12_overlapped_causal_ring/on_streams.h"
#include "tests/optimized/ring/fake_streams.h"
#include "tests/stages/work_on_memory.h"

namespace ringlab::stages::testing {
namespace {

/// One row of a call: as long as it runs its state is what a kernel's is, in base 2.
template <class Element>
void forward_row(const cuda::ForwardCall<Element>& call, std::int64_t row, std::int64_t first_key,
                 const cuda::KeyRange& seen) {
  const std::int32_t d = call.shape.head_dim, dv = call.shape.v_dim;
  SoftmaxState<float>& state = call.running.states[row];
  float* const acc = call.running.accs + row * dv;
  if (call.begins) state = {}, std::fill_n(acc, dv, 0.0f);
  for (std::int64_t key = first_key + seen.first; key < first_key + seen.last; ++key) {
    float score = 0;
    for (std::int32_t c = 0; c < d; ++c) {
      score += static_cast<float>(call.q[row * d + c]) * static_cast<float>(call.k[key * d + c]);
    }
    score *= call.scale;
    const float top = std::max(state.row_max, score);
    const float keep = std::exp2(state.row_max - top), weight = std::exp2(score - top);
    state = {top, state.row_sum * keep + weight};
    for (std::int32_t c = 0; c < dv; ++c) {
      acc[c] = acc[c] * keep + weight * static_cast<float>(call.v[key * dv + c]);
    }
  }
  if (!call.finishes) return;
  const bool empty = state.row_max == kEmptyRowMax<float>;
  call.lse[row] = empty ? state.row_max
                        : std::numbers::ln2_v<float> * (state.row_max + std::log2(state.row_sum));
  for (std::int32_t c = 0; c < dv; ++c) {
    call.out[row * dv + c] = static_cast<Element>(empty ? 0.0f : acc[c] / state.row_sum);
  }
  std::fill_n(acc, dv, std::numeric_limits<float>::quiet_NaN());  // nobody reads a finished state
}

/// Kernels as those of optimized/cuda are called, as work of streams that are memory.
template <class Element>
const ring::DeviceKernels<Element>& fast_kernels_on_memory() {
  static const ring::DeviceKernels<Element> kernels{
      .why_not = {},
      .forward_tile_queries = 4,
      .forward =
          [](const cuda::ForwardCall<Element>& call, cuda::Stream stream) {
            ring::put_on(stream, [call] {
              const cuda::BlockShape& s = call.shape;
              for (std::int64_t row = 0; row < std::int64_t{s.batch} * s.q_heads * s.queries;
                   ++row) {
                const std::int64_t kv_head = row / s.queries / (s.q_heads / s.kv_heads);
                const std::int64_t query = row % s.queries;
                const cuda::KeyRange seen = call.mask.rows[query];
                const cuda::TileKeys tile = call.mask.tiles[query / 4];
                const bool in_tile = seen.last <= seen.first ||
                                     (seen.first >= tile.any.first && seen.last <= tile.any.last);
                if (!in_tile) throw std::logic_error("a row that sees more than its tile");
                forward_row(call, row, kv_head * s.keys, seen);
              }
            });
          },
      .backward = {},
      .clear_states = {},
      .finish_rows = {},
      .delta_rows = {},
      .scale_to = {}};
  return kernels;
}

template <class Run>
RunResult run_on_memory(const AttentionInput& input, const RunOptions& options, Run run) {
  return run_together(
      input, options,
      [&]<class Element>(std::span<RankProblem<Element>> ranks, std::span<Traffic> moved) {
        run(DeviceRing<Element>{ranks, moved, kernel_on_memory<Element>(),
                                rows_on_memory<Element>()});
      });
}
RunResult run_overlapped(const AttentionInput& input, const RunOptions& options) {
  return run_on_memory(input, options,
                       [](const auto& ring) { overlapped_ring::run_on_streams(ring); });
}
RunResult run_balanced(const AttentionInput& input, const RunOptions& options) {
  return run_on_memory(input, options,
                       [](const auto& ring) { balanced_ring::run_on_streams(ring); });
}
RunResult run_skipping(const AttentionInput& input, const RunOptions& options) {
  return run_on_memory(input, options,
                       [](const auto& ring) { skipping_ring::run_on_streams(ring); });
}
/// With kernels of its own where the stage has fast ones.
RunResult run_fast(const AttentionInput& input, const RunOptions& options) {
  return run_on_memory(input, options, [](const auto& ring) {
    overlapped_causal_ring::run_on_streams(ring, []<class Element>(Element) -> decltype(auto) {
      return fast_kernels_on_memory<Element>();
    });
  });
}

}  // namespace

const std::array<StreamedStage, 4> kStreamedStages = {{{"overlapped_ring", run_overlapped},
                                                       {"balanced_ring", run_balanced},
                                                       {"skipping_ring", run_skipping},
                                                       {"overlapped_causal_ring", run_fast}}};

}  // namespace ringlab::stages::testing
