#include "optimized/cpu/bf16_dot_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ringlab::cpu::bf16_dot {
namespace {

bool is_subnormal(BFloat16 value) {
  return (value.bits & 0x7f80u) == 0 && (value.bits & 0x7fu) != 0;
}

float widened(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

}  // namespace

QueryTile::QueryTile(const Channels& channels)
    : channels_(channels),
      queries_(aligned_array<std::uint32_t>(channels.pairs() * kWidth)),
      state_(aligned_array<float>(2 * kWidth)),
      acc_(aligned_array<float>(channels.panels() * kPanel * kWidth)),
      first_(aligned_array<std::int32_t>(kWidth)),
      last_(aligned_array<std::int32_t>(kWidth)),
      seen_(static_cast<std::size_t>(kWidth)) {}

const BFloat16* QueryTile::row_of(std::int64_t lane) const {
  return rows_.q + std::min(lane, rows_.count - 1) * channels_.head_dim;
}

void QueryTile::load(const QueryRows& rows, const Mask& mask) {
  rows_ = rows;
  has_subnormals_ = has_subnormal(bits_of(rows.q), rows.count * channels_.head_dim);
  std::fill_n(acc_.get(), channels_.panels() * kPanel * kWidth, 0.0f);
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    const std::int64_t row = std::min(lane, rows.count - 1);
    const BFloat16* const q = row_of(lane);
    for (std::int64_t t = 0; t < channels_.pairs(); ++t) {
      const std::uint32_t odd = 2 * t + 1 < channels_.head_dim ? q[2 * t + 1].bits : 0u;
      queries_[static_cast<std::size_t>(t * kWidth + lane)] = q[2 * t].bits | odd << 16;
    }
    for (std::int64_t c = 0; c < channels_.v_dim; ++c) {
      acc_[static_cast<std::size_t>(c * kWidth + lane)] = rows.accs[row * channels_.v_dim + c];
    }
    row_max()[lane] = rows.states[row].row_max;
    row_sum()[lane] = rows.states[row].row_sum;
    seen_[static_cast<std::size_t>(lane)] = mask.interval(rows.positions[row]);
  }
}

void QueryTile::store(SoftmaxState<float>* states, float* accs) const {
  for (std::int64_t row = 0; row < rows_.count; ++row) {
    states[row] = {state_[static_cast<std::size_t>(row)],
                   state_[static_cast<std::size_t>(kWidth + row)]};
    for (std::int64_t c = 0; c < channels_.v_dim; ++c) {
      accs[row * channels_.v_dim + c] = acc_[static_cast<std::size_t>(c * kWidth + row)];
    }
  }
}

void QueryTile::look_at(const PositionRun& run) {
  view_ = {};
  for (std::size_t lane = 0; lane < seen_.size(); ++lane) {
    const RowRange rows = rows_in(run, seen_[lane]);
    first_[lane] = static_cast<std::int32_t>(rows.first);
    last_[lane] = static_cast<std::int32_t>(rows.last);
    view_.add(rows, lane == 0);
  }
}

void QueryTile::add_subnormal_queries(const BFloat16* keys, std::int64_t count,
                                      float* scores) const {
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    const BFloat16* const q = row_of(lane);
    for (std::int64_t c = 0; c < channels_.head_dim; ++c) {
      if (!is_subnormal(q[c])) continue;
      for (std::int64_t j = 0; j < count; ++j) {
        scores[j * kWidth + lane] +=
            widened(q[c].bits) * widened(keys[j * channels_.head_dim + c].bits);
      }
    }
  }
}

void QueryTile::add_subnormal_keys(const BFloat16* keys, std::int64_t count, float* scores) const {
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t c = 0; c < channels_.head_dim; ++c) {
      const BFloat16 key = keys[j * channels_.head_dim + c];
      if (!is_subnormal(key)) continue;
      for (std::int64_t lane = 0; lane < kWidth; ++lane) {
        scores[j * kWidth + lane] += widened(row_of(lane)[c].bits) * widened(key.bits);
      }
    }
  }
}

KeyBlock::KeyBlock(std::int64_t most_rows, const Channels& channels)
    : channels_(channels),
      padded_(channels.head_dim % 2 == 0
                  ? nullptr
                  : aligned_array<std::uint16_t>(most_rows * 2 * channels.pairs())) {}

void KeyBlock::load(const BFloat16* keys, std::int64_t rows) {
  raw_ = keys;
  pairs_ = bits_of(keys);
  has_subnormals_ = has_subnormal(pairs_, rows * channels_.head_dim);
  if (!padded_) return;
  std::uint16_t* to = padded_.get();
  for (std::int64_t row = 0; row < rows; ++row) {
    to = std::copy_n(bits_of(raw(row)), channels_.head_dim, to);
    *to++ = 0;
  }
  pairs_ = padded_.get();
}

ValueBlock::ValueBlock(std::int64_t most_rows, const Channels& channels)
    : channels_(channels),
      stride_(((most_rows + 1) / 2 + 2) * kPanel),
      panels_(aligned_array<std::uint32_t>(channels.panels() * stride_)) {}

void ValueBlock::load(const BFloat16* values, std::int64_t rows) {
  specials_.clear();
  const bool finite = pack_values({.values = bits_of(values),
                                   .rows = rows,
                                   .channels = channels_.v_dim,
                                   .panels = panels_.get(),
                                   .panel_stride = stride_});
  if (!finite) set_specials_apart(values, rows);
}

void ValueBlock::set_specials_apart(const BFloat16* values, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < channels_.v_dim; ++c) {
      const float value = widened(values[row * channels_.v_dim + c].bits);
      if (std::isfinite(value)) continue;
      specials_.push_back({row, c, value});
      std::uint32_t& pair =
          panels_[static_cast<std::size_t>(c / kPanel * stride_ + row / 2 * kPanel + c % kPanel)];
      pair &= row % 2 == 0 ? 0xffff0000u : 0xffffu;
    }
  }
}

void ValueBlock::add_specials(std::int64_t first, std::int64_t count, const std::uint32_t* weights,
                              float* acc) const {
  for (const Special& special : specials_) {
    if (special.row < first || special.row >= first + count) continue;
    const std::int64_t row = special.row - first;
    for (std::int64_t lane = 0; lane < kWidth; ++lane) {
      const std::uint32_t pair = weights[row / 2 * kWidth + lane];
      const float weight = widened(row % 2 == 0 ? pair & 0xffffu : pair >> 16);
      if (weight != 0) acc[special.channel * kWidth + lane] += weight * special.value;
    }
  }
}

}  // namespace ringlab::cpu::bf16_dot
