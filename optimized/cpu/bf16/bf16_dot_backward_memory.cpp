#include "optimized/cpu/bf16/bf16_dot_backward_memory.h"

#include <algorithm>

#include "optimized/cpu/base_2.h"
#include "reference/core/state.h"

namespace ringlab::cpu::bf16_dot {

PairedGradients::PairedGradients(const PairedChannels& channels)
    : channels_(channels),
      queries_(channels.head_dim, channels.products.pairs_of(channels.head_dim)),
      douts_(channels.v_dim, channels.products.pairs_of(channels.v_dim)),
      lanes_(aligned_array<float>(2 * kWidth)),  // (lse and delta, lanes)
      dq_(aligned_array<float>(channels.in_panels(channels.head_dim) * kWidth)) {}

void PairedGradients::load(const PairedGradientRows& rows, const Mask& mask) {
  rows_ = rows;
  queries_.load(rows.q, rows.count);
  douts_.load(rows.dout, rows.count);
  sight_.load(rows.positions, rows.count, mask);
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    // Lanes beyond the rows repeat the last; differentiate() makes their P and dS zero.
    const std::int64_t row = std::min(lane, rows.count - 1);
    // A row that saw nothing has lse -inf, which is never used: all its scores are hidden.
    lanes_[static_cast<std::size_t>(lane)] = in_base_2(rows.lse[row]);
    lanes_[static_cast<std::size_t>(kWidth + lane)] = rows.delta[row];
  }
  std::fill_n(dq_.get(), channels_.in_panels(channels_.head_dim) * kWidth, 0.0f);
}

void PairedGradients::add_to(float* dq) const {
  add_to_rows(dq_.get(), rows_.count, channels_.head_dim, dq);
}

RowPanels::RowPanels(std::int64_t tiles, std::int64_t channels, const Products& products)
    : channels_(channels),
      products_(products),
      // One line more than needed, so that panels do not share cache sets.
      stride_((tiles * kTilePairs + kMoreRows / 2) * kWidePanel + 16),
      panels_(aligned_array<std::uint32_t>((channels + kWidePanel - 1) / kWidePanel * stride_)) {}

void RowPanels::load(const BFloat16* values, std::int64_t rows) {
  specials_.clear();
  const bool finite = pack_rows({.values = bits_of(values),
                                 .rows = rows,
                                 .channels = channels_,
                                 // Whole tiles and more: rows after the last are zeros, so that
                                 // weights of idle lanes meet zeros.
                                 .pairs = (rows + kWidth - 1) / kWidth * kTilePairs + kMoreRows / 2,
                                 .panels = panels_.get(),
                                 .panel_stride = stride_});
  if (finite && !has_subnormal(bits_of(values), rows * channels_)) return;
  specials_ = specials_of(values, rows, channels_, Apart::not_finite_or_subnormal);
  // Zeros replace these numbers in the panels; they are added apart: inf · 0 would be NaN for keys
  // that do not see the row, and a subnormal would be read as 0.
  for (const LostNumber& special : specials_) {
    const std::int64_t c = special.channel;
    const std::int64_t at =
        c / kWidePanel * stride_ + special.row / 2 * kWidePanel + c % kWidePanel;
    // Pairs of rows: the even one in the low half.
    panels_[static_cast<std::size_t>(at)] &= special.row % 2 == 0 ? 0xffff0000u : 0xffffu;
  }
}

void RowPanels::add_to(const WeightedSum& sum) const {
  // From the first tile that looks at these keys to the last one, in pairs that are summed together
  // from the group's first query on: other tiles have no weight here.
  const std::int64_t together = products_.pairs;
  const std::int64_t first = sum.first_tile * kTilePairs / together * together;
  products_.add_over_queries({.weights = sum.weights + 2 * first,
                              .weight_stride = sum.weight_stride,
                              .keys = sum.keys,
                              .rows = panels_.get() + first * kWidePanel,
                              .panel_stride = stride_,
                              .pairs = sum.last_tile * kTilePairs - first,
                              .channels = channels_,
                              .sums = sum.sums});
  add_specials(sum);
}

void RowPanels::add_specials(const WeightedSum& sum) const {
  for (const LostNumber& special : specials_) {
    const std::int64_t row = special.row;
    if (row < sum.first_tile * kWidth || row >= sum.last_tile * kWidth) continue;
    for (std::int64_t j = 0; j < sum.keys; ++j) {
      // The weight as rounded to bf16, which the products have used as well.
      const float weight = widened(sum.weights[j * sum.weight_stride + row]);
      // Without weight there is no NaN: an infinite q or dO does not harm a key that is hidden.
      if (weight != 0) sum.sums[j * channels_ + special.channel] += weight * special.value;
    }
  }
}

// Keys come in matrices of 16 and pairs of 16 as well. Rows that are half a line longer do not
// share cache sets.
constexpr std::int64_t kMoreKeys = 32;
WeightMemory::WeightMemory(std::int64_t tiles, std::int64_t keys)
    : stride_(tiles * kWidth + kMoreRows),
      p_(aligned_array<std::uint16_t>((keys + kMoreKeys) * stride_)),
      ds_(aligned_array<std::uint16_t>((keys + kMoreKeys) * stride_)) {}

WeightRows WeightMemory::at(std::int64_t key, std::int64_t tile) const {
  const std::int64_t from = key * stride_ + tile * kWidth;
  return {.p = p_.get() + from, .ds = ds_.get() + from, .stride = stride_};
}

void WeightMemory::clear(std::int64_t first, std::int64_t last, std::int64_t tile) {
  clear(at(first, tile), last - first, kWidth);
}
void WeightMemory::clear_after(std::int64_t tiles, std::int64_t keys) {
  clear(at(0, tiles), keys, kMoreRows);
}
void WeightMemory::clear(const WeightRows& rows, std::int64_t keys, std::int64_t queries) {
  for (std::int64_t key = 0; key < keys; ++key) {
    std::fill_n(rows.p + key * rows.stride, queries, std::uint16_t{0});
    std::fill_n(rows.ds + key * rows.stride, queries, std::uint16_t{0});
  }
}

}  // namespace ringlab::cpu::bf16_dot
