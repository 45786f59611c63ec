// The forward kernel for Hopper: a thread's part of its rows, and their loads and stores.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "optimized/cuda/hopper/forward_hopper_tile.cuh"
#include "optimized/cuda/hopper/warp_boxes.cuh"
#include "reference/core/state.h"

namespace ringlab::cuda {

// --- a consumer: its registers -----------------------------------------------------------------

/// The rows a thread works on, and its part of them: columns (of scores: keys, of acc: channels)
/// 8 n + 2 t and the next one of its two rows. Arrays are [4 n + 2 i + (0 or 1)], see
/// device_code.h.
template <class Tile>
struct ThreadRows {
  float scores[Tile::kKeys / 2];
  std::uint32_t weights[Tile::kKeys / 16][4];
  float acc[Tile::kChannels / 2];
  float row_max[2];  ///< -inf, or at most `slack` below the largest of this row so far
  float row_sum[2];  ///< of this thread's columns only
  float factor[2];   ///< by which acc has yet to be multiplied
  KeyRange sees[2];  ///< less first_column()
  /// Q of the warp's 16 rows as fragments of a left operand, where the kernel keeps it.
  std::uint32_t queries[Tile::kTactics.keeps_queries ? Tile::kChannels / 16 : 1][4];
  std::int32_t query[2];
  std::int32_t head;
};

RINGLAB_KERNEL_CODE int lane_of_row() { return thread_index() % 4; }
RINGLAB_KERNEL_CODE int first_column() { return 2 * lane_of_row(); }

/// The sum over the four lanes that share a row.
RINGLAB_KERNEL_CODE float sum_of_row(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}
/// The maximum over those lanes; a NaN loses against a number, but shows in the row's sum.
RINGLAB_KERNEL_CODE float max_of_row(float value) {
  value = fmaxf(value, shuffle_xor(value, 1));
  return fmaxf(value, shuffle_xor(value, 2));
}

/// The number of a row among those of all heads.
template <class Tile>
RINGLAB_KERNEL_CODE std::int64_t row_number(const BlockShape& shape, const ThreadRows<Tile>& rows,
                                            int i) {
  return std::int64_t{rows.head} * shape.queries + rows.query[i];
}

/// Two neighbours in memory, read or written at once.
template <class Value>
struct alignas(2 * sizeof(Value)) PairOf {
  Value low, high;
};

/// Calls act(column of v, index of the first of two accumulators) for existing columns of row i.
template <class Tile, class Act>
RINGLAB_KERNEL_CODE void for_pairs_of_row(const BlockShape& shape, const ThreadRows<Tile>& rows,
                                          int i, Act&& act) {
  if (rows.query[i] >= shape.queries) return;
  RINGLAB_UNROLL
  for (int n = 0; n < Tile::kChannels / 8; ++n) {
    const int column = 8 * n + first_column();
    if (column < shape.v_dim) act(column, 4 * n + 2 * i);
  }
}

// --- a consumer: states in and out -------------------------------------------------------------

/// Begins with the state of row i: empty, or as an earlier call left it.
template <class Tile>
RINGLAB_KERNEL_CODE void begin_state(const ForwardCall<typename Tile::Element>& call,
                                     ThreadRows<Tile>& rows, int i) {
  RINGLAB_UNROLL
  for (int n = 0; n < Tile::kChannels / 8; ++n) {
    rows.acc[4 * n + 2 * i] = 0;
    rows.acc[4 * n + 2 * i + 1] = 0;
  }
  rows.row_max[i] = kEmptyRowMax<float>;
  rows.row_sum[i] = 0;
  rows.factor[i] = 1;
  if (call.begins || rows.query[i] >= call.shape.queries) return;
  const std::int64_t number = row_number(call.shape, rows, i);
  const SoftmaxState<float> state = call.running.states[number];
  rows.row_max[i] = state.row_max;
  // One lane takes the sum, since sums of the row's lanes are added up at the end.
  rows.row_sum[i] = lane_of_row() == 0 ? state.row_sum : 0;
  if (state.row_max == kEmptyRowMax<float>) return;
  const float* acc = call.running.accs + number * call.shape.v_dim;
  for_pairs_of_row(call.shape, rows, i, [&](int column, int at) {
    const auto pair = *reinterpret_cast<const PairOf<float>*>(acc + column);
    rows.acc[at] = pair.low;
    rows.acc[at + 1] = pair.high;
  });
}

template <class Tile>
RINGLAB_KERNEL_CODE void begin_rows(const ForwardCall<typename Tile::Element>& call,
                                    TilePlace place, const KeyRange* tile_sees, int consumer,
                                    ThreadRows<Tile>& rows) {
  const int thread = thread_index() % 128;
  rows.head = place.head;
  RINGLAB_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int row = 64 * consumer + 16 * (thread / 32) + thread % 32 / 4 + 8 * i;
    rows.query[i] = place.tile * Tile::kQueries + row;
    KeyRange sees;
    if (rows.query[i] < call.shape.queries) sees = tile_sees[row];
    rows.sees[i] = {sees.first - first_column(), sees.last - first_column()};
    begin_state(call, rows, i);
  }
}

/// Leaves the state in memory for the next call.
template <class Tile>
RINGLAB_KERNEL_CODE void leave_state(const ForwardCall<typename Tile::Element>& call,
                                     const ThreadRows<Tile>& rows, int i) {
  if (rows.query[i] >= call.shape.queries) return;
  const std::int64_t number = row_number(call.shape, rows, i);
  if (lane_of_row() == 0) call.running.states[number] = {rows.row_max[i], rows.row_sum[i]};
  float* acc = call.running.accs + number * call.shape.v_dim;
  for_pairs_of_row(call.shape, rows, i, [&](int column, int at) {
    *reinterpret_cast<PairOf<float>*>(acc + column) = {rows.acc[at], rows.acc[at + 1]};
  });
}

/// Writes the lse of row i and returns the factor of its accumulators, 1 / row_sum. A row that saw
/// nothing has the sum 0, and its acc is 0; a row that saw nothing but NaN has a row_max of -inf too,
/// but the sum NaN.
template <class Tile>
RINGLAB_KERNEL_CODE float close_row(const ForwardCall<typename Tile::Element>& call,
                                    const ThreadRows<Tile>& rows, int i) {
  constexpr float kLn2 = 0.693147180559945309f;
  const float sum = rows.row_sum[i];
  if (lane_of_row() == 0 && rows.query[i] < call.shape.queries) {
    call.lse[row_number(call.shape, rows, i)] =
        sum == 0 ? kEmptyRowMax<float> : rows.row_max[i] * kLn2 + logf(sum);
  }
  return sum == 0 ? 0 : 1 / sum;
}

/// out = acc / row_sum, straight from registers.
template <class Tile>
RINGLAB_KERNEL_CODE void write_out(const ForwardCall<typename Tile::Element>& call,
                                   const ThreadRows<Tile>& rows, int i, float inverse) {
  if (rows.query[i] >= call.shape.queries) return;
  using Element = typename Tile::Element;
  Element* out = call.out + row_number(call.shape, rows, i) * call.shape.v_dim;
  for_pairs_of_row(call.shape, rows, i, [&](int column, int at) {
    const auto pair = pack<Element>(rows.acc[at] * inverse, rows.acc[at + 1] * inverse);
    *reinterpret_cast<PairOf<Element>*>(out + column) = std::bit_cast<PairOf<Element>>(pair);
  });
}

/// out = acc / row_sum, by way of 16 rows of shared memory that are this warp's. All lanes.
template <class Tile>
RINGLAB_KERNEL_CODE void store_out(const HopperParams<typename Tile::Element>& params,
                                   std::byte* boxes, const ThreadRows<Tile>& rows,
                                   const float (&inverse)[2]) {
  const bool leads = thread_index() % 32 == 0;
  if (leads) wait_for_boxes<0>();  // the tile before is out of this memory
  sync_warp();
  RINGLAB_UNROLL
  for (int channel = 0; channel < Tile::kChannels; channel += 16) {
    const auto pair = [&](int at, int i) {
      return pack<typename Tile::Element>(rows.acc[at] * inverse[i], rows.acc[at + 1] * inverse[i]);
    };
    const int at = channel / 2;
    store_matrices(boxes + channel / kBoxChannels * kWarpBoxBytes + fragment_place(channel),
                   {pair(at, 0), pair(at + 2, 1), pair(at + 4, 0), pair(at + 6, 1)});
  }
  fence_async_proxy();
  sync_warp();
  if (!leads) return;
  for (int channel = 0; channel < params.call.shape.v_dim; channel += kBoxChannels) {
    store_box(&params.out, boxes + channel / kBoxChannels * kWarpBoxBytes, rows.head, rows.query[0],
              channel);  // this lane's first query is the warp's
  }
  commit_boxes();
}

/// Writes the results of both rows. `boxes`: shared memory of this warp for results in boxes.
template <class Tile>
RINGLAB_KERNEL_CODE void end_rows(const HopperParams<typename Tile::Element>& params,
                                  std::byte* boxes, ThreadRows<Tile>& rows) {
  const auto& call = params.call;
  RINGLAB_UNROLL
  for (float& sum : rows.row_sum) sum = sum_of_row(sum);
  if (!call.finishes) {
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) leave_state(call, rows, i);
    return;
  }
  const float inverse[2] = {close_row(call, rows, 0), close_row(call, rows, 1)};
  if constexpr (Tile::kTactics.stores_boxes) {
    store_out(params, boxes, rows, inverse);
  } else {
    RINGLAB_UNROLL
    for (int i = 0; i < 2; ++i) write_out(call, rows, i, inverse[i]);
  }
}

}  // namespace ringlab::cuda
