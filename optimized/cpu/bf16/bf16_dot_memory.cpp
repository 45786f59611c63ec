#include "optimized/cpu/bf16/bf16_dot_memory.h"

#include <algorithm>
#include <cmath>

namespace ringlab::cpu::bf16_dot {

PairedQueries::PairedQueries(const PairedChannels& channels)
    : channels_(channels),
      queries_(channels.head_dim),
      state_(aligned_array<float>(2 * kWidth)),
      acc_(aligned_array<float>(channels.panels() * kPanel * kWidth)) {}

void PairedQueries::load(const PairedQueryRows& rows, const Mask& mask) {
  rows_ = rows;
  queries_.load(rows.q, rows.count);
  sight_.load(rows.positions, rows.count, mask);
  // Channels beyond v_dim have sums as well, of zeros; they are never stored.
  std::fill_n(acc_.get(), channels_.panels() * kPanel * kWidth, 0.0f);
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    const std::int64_t row = std::min(lane, rows.count - 1);
    for (std::int64_t c = 0; c < channels_.v_dim; ++c) {
      // (v_dim, lanes) from (rows, v_dim)
      acc_[static_cast<std::size_t>(c * kWidth + lane)] = rows.accs[row * channels_.v_dim + c];
    }
    row_max()[lane] = rows.states[row].row_max;
    row_sum()[lane] = rows.states[row].row_sum;
  }
}

void PairedQueries::store(SoftmaxState<float>* states, float* accs) const {
  for (std::int64_t row = 0; row < rows_.count; ++row) {
    states[row] = {state_[static_cast<std::size_t>(row)],
                   state_[static_cast<std::size_t>(kWidth + row)]};
    for (std::int64_t c = 0; c < channels_.v_dim; ++c) {
      accs[row * channels_.v_dim + c] = acc_[static_cast<std::size_t>(c * kWidth + row)];
    }
  }
}

PairedKeys::PairedKeys(std::int64_t most_rows, std::int64_t channels)
    : channels_(channels),
      padded_(channels % 2 == 0 ? nullptr
                                : aligned_array<std::uint16_t>(most_rows * (channels + 1))) {}

void PairedKeys::load(const BFloat16* keys, std::int64_t rows) {
  raw_ = keys;
  pairs_ = bits_of(keys);
  // Copied only where a row has an odd number of channels: pairs must not span two rows.
  has_subnormals_ = has_subnormal(pairs_, rows * channels_);
  if (!padded_) return;
  std::uint16_t* to = padded_.get();
  for (std::int64_t row = 0; row < rows; ++row) {
    to = std::copy_n(bits_of(raw(row)), channels_, to);
    *to++ = 0;  // the last channel's partner
  }
  pairs_ = padded_.get();
}

std::vector<LostNumber> specials_of(const BFloat16* values, std::int64_t rows,
                                    std::int64_t channels, Apart apart) {
  std::vector<LostNumber> specials;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const BFloat16 number = values[row * channels + c];
      const float value = widened(number.bits);
      // Whether subnormal numbers are lost depends on the other factor: by a weight of at most 1
      // the product is subnormal as well, by a dS it may be large.
      const bool lost = apart == Apart::not_finite_or_subnormal && is_subnormal(number);
      if (lost || !std::isfinite(value)) specials.push_back({row, c, value});
    }
  }
  return specials;
}

ValueBlock::ValueBlock(std::int64_t most_rows, std::int64_t channels, Apart apart)
    : channels_(channels),
      apart_(apart),
      stride_(((most_rows + 1) / 2 + 2) * kPanel),  // (panel, pair of rows, kPanel)
      panels_(aligned_array<std::uint32_t>(panels_of(channels) * stride_)) {}

void ValueBlock::load(const BFloat16* values, std::int64_t rows) {
  specials_.clear();
  const bool finite = pack_values({.values = bits_of(values),
                                   .rows = rows,
                                   .channels = channels_,
                                   .panels = panels_.get(),
                                   .panel_stride = stride_});
  const bool lost =
      apart_ == Apart::not_finite_or_subnormal && has_subnormal(bits_of(values), rows * channels_);
  if (finite && !lost) return;
  specials_ = specials_of(values, rows, channels_, apart_);
  for (const LostNumber& special : specials_) {
    const std::int64_t row = special.row, c = special.channel;
    std::uint32_t& pair =
        panels_[static_cast<std::size_t>(c / kPanel * stride_ + row / 2 * kPanel + c % kPanel)];
    pair &= row % 2 == 0 ? 0xffff0000u : 0xffffu;  // the number is zero in the product
  }
}

void ValueBlock::add_specials(std::int64_t first, std::int64_t count, const std::uint32_t* weights,
                              float* acc) const {
  for (const LostNumber& special : specials_) {
    if (special.row < first || special.row >= first + count) continue;
    const std::int64_t row = special.row - first;
    for (std::int64_t lane = 0; lane < kWidth; ++lane) {
      const std::uint32_t pair = weights[row / 2 * kWidth + lane];
      // The half of the pair that belongs to the row: the same weight,
      // rounded to bf16, as its product.
      const float weight = widened(row % 2 == 0 ? pair & 0xffffu : pair >> 16);
      if (weight != 0) acc[special.channel * kWidth + lane] += weight * special.value;
    }
  }
}

}  // namespace ringlab::cpu::bf16_dot
