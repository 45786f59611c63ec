#include "optimized/cpu/bf16/bf16_dot_memory.h"

#include <algorithm>
#include <cmath>

namespace ringlab::cpu::bf16_dot {

PairedQueries::PairedQueries(const PairedChannels& channels)
    : channels_(channels),
      queries_(channels.head_dim, channels.products.pairs_of(channels.head_dim)),
      state_(aligned_array<float>(2 * kWidth)),
      acc_(aligned_array<float>(channels.in_panels(channels.v_dim) * kWidth)) {}

void PairedQueries::load(const PairedQueryRows& rows, const Mask& mask) {
  rows_ = rows;
  queries_.load(rows.q, rows.count);
  sight_.load(rows.positions, rows.count, mask);
  // Channels beyond v_dim have sums as well, of zeros; they are never stored.
  std::fill_n(acc_.get() + channels_.v_dim * kWidth,
              (channels_.in_panels(channels_.v_dim) - channels_.v_dim) * kWidth, 0.0f);
  turn_into_lanes(rows.accs, rows.count, channels_.v_dim, acc_.get());
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    const std::int64_t row = std::min(lane, rows.count - 1);
    row_max()[lane] = rows.states[row].row_max;
    row_sum()[lane] = rows.states[row].row_sum;
  }
}

void PairedQueries::store(SoftmaxState<float>* states, float* accs) const {
  for (std::int64_t row = 0; row < rows_.count; ++row) {
    states[row] = {state_[static_cast<std::size_t>(row)],
                   state_[static_cast<std::size_t>(kWidth + row)]};
  }
  turn_into_rows(acc_.get(), rows_.count, channels_.v_dim, accs);
}

PairedKeys::PairedKeys(std::int64_t most_rows, std::int64_t channels, const Products& products)
    : channels_(channels), width_(2 * products.pairs_of(channels)), unit_(products.rows) {
  if (width_ == channels && unit_ == 1) return;
  filled_ = aligned_array<std::uint16_t>((most_rows + unit_ - 1) / unit_ * unit_ * width_);
}

void PairedKeys::load(const BFloat16* keys, std::int64_t rows) {
  raw_ = keys;
  pairs_ = bits_of(keys);
  has_subnormals_ = has_subnormal(pairs_, rows * channels_);
  // Copies keys only where channels or rows must be filled up: pairs must not span two rows.
  if (width_ != channels_ || rows % unit_ != 0) fill_up(rows);
}

void PairedKeys::fill_up(std::int64_t rows) {
  std::uint16_t* to = filled_.get();
  for (std::int64_t row = 0; row < rows; ++row) {
    to = std::copy_n(bits_of(raw(row)), channels_, to);
    to = std::fill_n(to, width_ - channels_, std::uint16_t{0});
  }
  std::fill_n(to, (unit_ - rows % unit_) % unit_ * width_, std::uint16_t{0});
  pairs_ = filled_.get();
}

std::vector<LostNumber> specials_of(const BFloat16* values, std::int64_t rows,
                                    std::int64_t channels, Apart apart) {
  std::vector<LostNumber> specials;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const BFloat16 number = values[row * channels + c];
      const float value = widened(number.bits);
      // Subnormal numbers are read as 0. Products with weights of at most 1 would be subnormal as
      // well, and so are lost anyway; products with dS may be large.
      const bool lost = apart == Apart::not_finite_or_subnormal && is_subnormal(number);
      if (lost || !std::isfinite(value)) specials.push_back({row, c, value});
    }
  }
  return specials;
}

ValueBlock::ValueBlock(std::int64_t most_rows, std::int64_t channels, Apart apart,
                       const Products& products)
    : channels_(channels),
      apart_(apart),
      products_(products),
      // (panel, pair of rows, channels of a panel)
      stride_((products.pairs_of(most_rows) + 2) * products.panel),
      panels_(aligned_array<std::uint32_t>(products.panels_of(channels) * stride_)) {}

// In vectors (panel, pair, channel), because one pair is summed at a time; in matrices (panel,
// group of pairs that are summed together, channel, pair).
std::uint32_t& ValueBlock::pair_at(std::int64_t row, std::int64_t channel) {
  const std::int64_t pair = row / 2, panel = products_.panel, together = products_.pairs;
  const std::int64_t at = channel / panel * stride_ + pair / together * together * panel +
                          channel % panel * together + pair % together;
  return panels_[static_cast<std::size_t>(at)];
}

void ValueBlock::load(const BFloat16* values, std::int64_t rows) {
  specials_.clear();
  const bool finite = products_.pack_values({.values = bits_of(values),
                                             .rows = rows,
                                             .channels = channels_,
                                             .panels = panels_.get(),
                                             .panel_stride = stride_});
  const bool lost =
      apart_ == Apart::not_finite_or_subnormal && has_subnormal(bits_of(values), rows * channels_);
  if (finite && !lost) return;
  specials_ = specials_of(values, rows, channels_, apart_);
  for (const LostNumber& special : specials_) {
    std::uint32_t& pair = pair_at(special.row, special.channel);
    pair &= special.row % 2 == 0 ? 0xffff0000u : 0xffffu;  // the number is zero in the product
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
