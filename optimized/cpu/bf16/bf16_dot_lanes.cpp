#include "optimized/cpu/bf16/bf16_dot_lanes.h"

#include <algorithm>
#include <bit>

namespace ringlab::cpu::bf16_dot {

bool is_subnormal(BFloat16 value) {
  return (value.bits & 0x7f80u) == 0 && (value.bits & 0x7fu) != 0;
}

// bf16 is the upper half of an f32.
float widened(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

LaneRows::LaneRows(std::int64_t channels, std::int64_t pairs)
    : channels_(channels), pairs_(aligned_array<std::uint32_t>(pairs * kWidth)) {
  std::fill_n(pairs_.get(), pairs * kWidth, std::uint32_t{0});
}

// Idle lanes repeat the last row: their results are harmless, and are not stored.
const BFloat16* LaneRows::row_of(std::int64_t lane) const {
  return rows_ + std::min(lane, count_ - 1) * channels_;
}

void LaneRows::load(const BFloat16* rows, std::int64_t count) {
  rows_ = rows;
  count_ = count;
  has_subnormals_ = has_subnormal(bits_of(rows), count * channels_);
  if (channels_ % 2 == 0) return turn_into_lanes(rows, count, channels_ / 2, pairs_.get());
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    const BFloat16* const row = row_of(lane);
    std::uint32_t* to = pairs_.get() + lane;
    for (std::int64_t c = 0; c < channels_; c += 2, to += kWidth) {
      // An odd last channel is paired with zero.
      const std::uint32_t odd = c + 1 < channels_ ? row[c + 1].bits : 0u;
      *to = row[c].bits | odd << 16;
    }
  }
}

// Products of a subnormal number of q. The instruction reads it as zero, but times a large key the
// product is a normal number and counts. Products of two subnormals underflow to zero in both
// functions.
void LaneRows::add_subnormal_rows(const BFloat16* keys, std::int64_t count, float* scores) const {
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    const BFloat16* const row = row_of(lane);
    for (std::int64_t c = 0; c < channels_; ++c) {
      if (!is_subnormal(row[c])) continue;
      for (std::int64_t j = 0; j < count; ++j) {
        scores[j * kWidth + lane] += widened(row[c].bits) * widened(keys[j * channels_ + c].bits);
      }
    }
  }
}

void LaneRows::add_subnormal_keys(const BFloat16* keys, std::int64_t count, float* scores) const {
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const BFloat16 key = keys[j * channels_ + c];
      if (!is_subnormal(key)) continue;
      for (std::int64_t lane = 0; lane < kWidth; ++lane) {
        scores[j * kWidth + lane] += widened(row_of(lane)[c].bits) * widened(key.bits);
      }
    }
  }
}

LaneSight::LaneSight()
    : first_(aligned_array<std::int32_t>(kWidth)),
      last_(aligned_array<std::int32_t>(kWidth)),
      seen_(static_cast<std::size_t>(kWidth)) {}

// One interval of positions per lane: all masks but bit matrices, which are asked pair by pair.
void LaneSight::load(const std::int64_t* positions, std::int64_t count, const Mask& mask) {
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    seen_[static_cast<std::size_t>(lane)] = mask.interval(positions[std::min(lane, count - 1)]);
  }
}

// Called once per run: within a run positions are evenly spaced, so an interval is a range of rows.
void LaneSight::look_at(const PositionRun& run) {
  view_ = {};
  for (std::size_t lane = 0; lane < seen_.size(); ++lane) {
    const RowRange rows = rows_in(run, seen_[lane]);
    first_[lane] = static_cast<std::int32_t>(rows.first);
    last_[lane] = static_cast<std::int32_t>(rows.last);
    view_.add(rows, lane == 0);  // lane 0 begins a new view
  }
}

}  // namespace ringlab::cpu::bf16_dot
