// Stages on devices that are plain memory: the tile program there, and streams in random orders.
#pragma once

#include <algorithm>

#include "stages/common/finished_row.h"
#include "stages/common/stream_kernel.h"
#include "stages/common/stream_rows.h"
#include "stages/tile/cpu_block.h"
#include "tests/optimized/ring/fake_streams.h"

namespace ringlab::stages::testing {

/// The tile program as work of a stream that is memory.
template <class Element>
StreamKernel<causal_ring::Kernel<Element>> kernel_on_memory() {
  using Kernel = causal_ring::Kernel<Element>;
  return {.memory_of =
              [](const Kernel&, const StreamLaunch&) {
                return BlockMemory{8, 24};
              },
          .launch =
              [](const Kernel& kernel, const StreamLaunch& launch) {
                ring::put_on(launch.stream, [kernel, launch] {
                  for (std::int64_t index = 0; index < launch.blocks; ++index) {
                    CpuBlock block(index, launch.threads, 1);
                    kernel(block);
                  }
                });
              }};
}

/// What a stream that is memory does before the first chunk and behind the last one.
template <class Element>
StreamRows<Element> rows_on_memory() {
  using Rows = DeviceRows<Element>;
  using State = SoftmaxState<Accumulator<Element>>;
  return {.clear =
              [](const Rows& all, ringlab::cuda::Stream stream) {
                ring::put_on(stream, [all] {
                  std::fill_n(all.states, all.rows, State{});
                  std::fill_n(all.accs, all.rows * all.v_dim, Accumulator<Element>(0));
                });
              },
          .finish =
              [](const Rows& all, ringlab::cuda::Stream stream) {
                ring::put_on(stream, [all] {
                  std::transform(all.states, all.states + all.rows, all.lse,
                                 [](const State& state) { return finished_lse(state); });
                  for (std::int64_t at = 0; at < all.rows * all.v_dim; ++at) {
                    all.out[at] = finished_value<Element>(all.states[at / all.v_dim], all.accs[at]);
                  }
                });
              }};
}

/// Work is done in an order of its own as long as this lives.
class RandomOrder {
 public:
  explicit RandomOrder(std::uint64_t seed) { ring::defer_work(seed); }
  ~RandomOrder() { ring::do_work_at_once(); }
  RandomOrder(const RandomOrder&) = delete;
  RandomOrder& operator=(const RandomOrder&) = delete;
};

}  // namespace ringlab::stages::testing
