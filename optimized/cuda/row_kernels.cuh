// The small kernels around attention: one warp per row, or one thread per pair of numbers. Any
// number of blocks of kRowThreads threads will do.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "optimized/cuda/portable/warp_tiles.cuh"
#include "optimized/cuda/row_calls.h"

namespace ringlab::cuda {

inline constexpr int kRowThreads = 128;
inline constexpr int kRowWarps = kRowThreads / kWarpLanes;

// A warp per row; the grid strides over the rows, so any number of blocks covers them.
RINGLAB_KERNEL_CODE std::int64_t first_row() {
  return static_cast<std::int64_t>(block_index()) * kRowWarps + warp_index();
}
RINGLAB_KERNEL_CODE std::int64_t row_step() {
  return static_cast<std::int64_t>(block_count()) * kRowWarps;
}

RINGLAB_KERNEL_CODE void clear_states_block(const ClearStates& call) {
  for (std::int64_t row = first_row(); row < call.rows; row += row_step()) {
    if (lane_index() == 0) call.running.states[row] = {};  // the empty state: (-inf, 0, 0)
    // Pairs of channels: channels are even on devices.
    for (int channel = 2 * lane_index(); channel < call.channels; channel += 2 * kWarpLanes) {
      *reinterpret_cast<FloatPair*>(call.running.accs + row * call.channels + channel) = {0, 0};
    }
  }
}

template <class Element>
RINGLAB_KERNEL_CODE void finish_rows_block(const FinishRows<Element>& call) {
  for (std::int64_t row = first_row(); row < call.rows; row += row_step()) {
    // Every lane reads the state: all need the divisor.
    const SoftmaxState<float> state = call.running.states[row];
    if (lane_index() == 0) call.lse[row] = finished_lse(state.row_max, state.row_sum);
    const float divisor = finished_divisor(state.row_sum);
    for (int channel = 2 * lane_index(); channel < call.channels; channel += 2 * kWarpLanes) {
      const std::int64_t at = row * call.channels + channel;
      const auto acc = *reinterpret_cast<const FloatPair*>(call.running.accs + at);
      *reinterpret_cast<ElementPair<Element>*>(call.out + at) =
          round_pair<Element>(acc.low / divisor, acc.high / divisor);
    }
  }
}

/// The value of lane 0, which alone reads the state, since it also writes it.
RINGLAB_KERNEL_CODE float told_by_first_lane(float value) {
  return std::bit_cast<float>(shuffle(std::bit_cast<std::uint32_t>(value), 0));
}

/// The number among all `rows` of every head of row `row`, counted among `count` rows of each head
/// from `first` on.
RINGLAB_KERNEL_CODE std::int64_t row_among_all(std::int64_t row, std::int32_t first,
                                               std::int32_t count, std::int32_t rows) {
  return row / count * rows + first + row % count;
}

template <class Element>
RINGLAB_KERNEL_CODE void merge_rows_block(const MergeRows<Element>& call) {
  constexpr float kPowersOfTwo = 1.44269504088896341f;  // in a power of e
  const std::int64_t rows = call.heads * call.count;
  for (std::int64_t row = first_row(); row < rows; row += row_step()) {
    const float lse = call.lse[row];
    // A row for which the other kernel saw nothing changes nothing, also -inf against -inf. All
    // lanes of the warp have the same row, so they go on together.
    if (lse == kEmptyRowMax<float>) continue;
    const std::int64_t to = row_among_all(row, call.first, call.count, call.queries);
    SoftmaxState<float> state;
    if (lane_index() == 0) state = call.running.states[to];
    const float before = told_by_first_lane(state.row_max);
    const float other = lse * kPowersOfTwo;              // the state is in base 2
    const float top = other <= before ? before : other;  // NaN stays
    // Never exp2((-inf) - top): a side that is empty has weight 0 by definition.
    const float mine = before == kEmptyRowMax<float> ? 0 : exp2_approx(before - top);
    const float theirs = exp2_approx(other - top);
    // The pair (out, lse) enters as the state (lse, 1, out): decision 1.
    if (lane_index() == 0) {
      call.running.states[to] = {top, state.row_sum * mine + theirs};
    }
    for (int channel = 2 * lane_index(); channel < call.channels; channel += 2 * kWarpLanes) {
      auto* const acc =
          reinterpret_cast<FloatPair*>(call.running.accs + to * call.channels + channel);
      const auto out =
          *reinterpret_cast<const ElementPair<Element>*>(call.out + row * call.channels + channel);
      *acc = {acc->low * mine + widen(out.low) * theirs,
              acc->high * mine + widen(out.high) * theirs};
    }
  }
}

template <class Element>
RINGLAB_KERNEL_CODE void add_rows_block(const AddRows<Element>& call) {
  const std::int64_t rows = call.heads * call.count;  // heads of this block
  for (std::int64_t row = first_row(); row < rows; row += row_step()) {
    const std::int64_t to = row_among_all(row, call.first, call.count, call.rows);
    for (int channel = 2 * lane_index(); channel < call.channels; channel += 2 * kWarpLanes) {
      auto* const sum = reinterpret_cast<FloatPair*>(call.to + to * call.channels + channel);
      const auto from =
          *reinterpret_cast<const ElementPair<Element>*>(call.from + row * call.channels + channel);
      *sum = {sum->low + widen(from.low), sum->high + widen(from.high)};
    }
  }
}

RINGLAB_KERNEL_CODE void pack_rows_block(const PackRows& call) {
  const std::int64_t first = static_cast<std::int64_t>(block_index()) * kRowThreads;
  const std::int64_t step = static_cast<std::int64_t>(block_count()) * kRowThreads;
  for (std::int64_t row = first + thread_index(); row < call.heads * call.count; row += step) {
    call.to[row] = call.from[row_among_all(row, call.first, call.count, call.rows)];
  }
}

template <class Element>
RINGLAB_KERNEL_CODE void delta_rows_block(const DeltaRows<Element>& call) {
  for (std::int64_t row = first_row(); row < call.rows; row += row_step()) {
    float sum = 0;
    for (int channel = 2 * lane_index(); channel < call.channels; channel += 2 * kWarpLanes) {
      const std::int64_t at = row * call.channels + channel;
      const auto out = *reinterpret_cast<const ElementPair<Element>*>(call.out + at);
      const auto dout = *reinterpret_cast<const ElementPair<Element>*>(call.dout + at);
      sum += widen(out.low) * widen(dout.low) + widen(out.high) * widen(dout.high);
    }
    // Gives all lanes the sum over the lanes.
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (lane_index() == 0) call.delta[row] = sum;
  }
}

template <class Element>
RINGLAB_KERNEL_CODE void scale_to_block(const ScaleTo<Element>& call) {
  const std::int64_t first = static_cast<std::int64_t>(block_index()) * kRowThreads;
  const std::int64_t step = static_cast<std::int64_t>(block_count()) * kRowThreads;
  // Two numbers each; counts are even, as channels are.
  for (std::int64_t pair = first + thread_index(); pair < call.count / 2; pair += step) {
    const auto from = *reinterpret_cast<const FloatPair*>(call.from + 2 * pair);
    *reinterpret_cast<ElementPair<Element>*>(call.to + 2 * pair) =
        round_pair<Element>(from.low * call.scale, from.high * call.scale);
  }
}

}  // namespace ringlab::cuda
