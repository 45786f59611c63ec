// The queries of a block against its keys, backward, in bf16 products.
#include <algorithm>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include "optimized/cpu/bf16/bf16_dot.h"
#include "optimized/cpu/bf16/bf16_dot_backward_memory.h"
#include "optimized/cpu/slice_shares.h"

namespace ringlab::cpu::bf16_dot {
namespace {

/// Keys whose scores and dP are in the first-level cache at a time; even, and whole register tiles.
constexpr std::int64_t kChunk = 32;

/// The job that all workers of a block share.
struct PairedBackwardJob {
  const Block<BFloat16>& block;
  const QueryGradients<BFloat16>& given;
  const BlockGradients<BFloat16>& sums;
  const Products& products;
  std::vector<std::int64_t> positions;  ///< of the queries
};

/// A worker of share_out_slices(): no other worker adds to dK and dV of its slice meanwhile.
class PairedBackwardWorker {
 public:
  explicit PairedBackwardWorker(const PairedBackwardJob& job)
      : job_(job),
        block_(job.block),
        channels_{block_.q.extents.channels, block_.v.extents.channels, job.products},
        keys_(block_.tiles.keys, channels_.head_dim, job.products),
        values_(block_.tiles.keys, channels_.v_dim, job.products),
        // Here K is multiplied by dS, which may be large: its subnormal numbers count.
        key_panels_(block_.tiles.keys, channels_.head_dim, Apart::not_finite_or_subnormal,
                    job.products),
        queries_(tile_count(block_), channels_.head_dim, job.products),
        douts_(tile_count(block_), channels_.v_dim, job.products),
        weights_(tile_count(block_), block_.tiles.keys),
        scores_(aligned_array<float>(2 * kChunk * kWidth)),
        ds_(aligned_array<std::uint32_t>(job.products.pairs_of(block_.tiles.keys) * kWidth)) {
    for (std::int64_t i = 0; i < tile_count(block_); ++i) tiles_.emplace_back(channels_);
    parts_.resize(tiles_.size());
  }

  static std::int64_t rows_at_once(const Block<BFloat16>& block) {
    return tile_count(block) * kWidth;
  }

  void meet_queries(std::int64_t kv_head, const KeySlice& slice, std::int64_t head,
                    const RowRange& rows) {
    const Multiplying here(channels_.products);
    take_in_queries(head, rows);
    const PositionRun* seen = nullptr;
    for (const KeyRows& keys : slice) {
      // Tiles turn to a run once, not once per piece of it.
      const PositionRun& run = block_.keys.runs()[keys.run];
      for (std::size_t i = 0; &run != seen && i < used_; ++i) tiles_[i].sight().look_at(run);
      seen = &run;
      meet_rows(run, keys.rows, kv_head * block_.k.extents.tokens + keys.start);
    }
  }

  void add_to_dq(std::int64_t head, const RowRange& rows) {
    float* dq = job_.sums.dq + (head * block_.q.extents.tokens + rows.first) * channels_.head_dim;
    for (std::size_t i = 0; i < used_; ++i, dq += kWidth * channels_.head_dim) {
      tiles_[i].add_to(dq);
    }
  }

 private:
  static std::int64_t tile_count(const Block<BFloat16>& block) {
    // Groups are whole pairs of tiles, which are three matrices of queries: no sum depends on where
    // a group begins.
    const std::int64_t held = std::min(block.tiles.queries, block.q.extents.tokens);
    return std::max<std::int64_t>(2, (held + 2 * kWidth - 1) / (2 * kWidth) * 2);
  }

  void take_in_queries(std::int64_t head, const RowRange& rows) {
    // Row of (batch, q_heads, tokens).
    const std::int64_t at = head * block_.q.extents.tokens + rows.first;
    const std::int64_t count = rows.last - rows.first;
    const BFloat16* const q = block_.q.data + at * channels_.head_dim;
    const BFloat16* const dout = job_.given.dout.data + at * channels_.v_dim;
    queries_.load(q, count);
    douts_.load(dout, count);
    used_ = static_cast<std::size_t>((count + kWidth - 1) / kWidth);
    for (std::size_t i = 0; i < used_; ++i) {
      // Loads the rows twice: with a lane each for S and dP, as panels for the sums of dK and dV.
      const std::int64_t row = static_cast<std::int64_t>(i) * kWidth;
      tiles_[i].load({.q = q + row * channels_.head_dim,
                      .dout = dout + row * channels_.v_dim,
                      .lse = job_.given.lse + at + row,
                      .delta = job_.given.delta + at + row,
                      .positions = job_.positions.data() + rows.first + row,
                      .count = std::min(kWidth, count - row)},
                     block_.mask);
    }
  }

  /// `start`: row of K and V where the run begins.
  void meet_rows(const PositionRun& run, const RowRange& rows, std::int64_t start) {
    bool any = false;
    for (std::size_t i = 0; i < used_; ++i) {
      parts_[i] = part_of(tiles_[i].sight().view().some, rows);
      any |= !parts_[i].empty();
    }
    // No tile looks at these keys: nothing is packed.
    if (!any) return;
    const std::int64_t at = start + rows.first, count = rows.last - rows.first;
    const BFloat16* const k = block_.k.data + at * channels_.head_dim;
    keys_.load(k, count);
    key_panels_.load(k, count);
    values_.load(block_.v.data + at * channels_.v_dim, count);
    for (std::size_t i = 0; i < used_; ++i) {
      const auto tile = static_cast<std::int64_t>(i);
      // Keys that this tile does not look at get weight 0: sums over
      // queries take all tiles at once.
      weights_.clear(0, parts_[i].first, tile);
      if (!parts_[i].empty()) meet_part(run, rows.first, i);
      weights_.clear(parts_[i].last, count, tile);
    }
    weights_.clear_after(static_cast<std::int64_t>(used_), count);
    add_to_keys(at);
  }

  /// Rows of the block at hand that a tile looks at, counted from its start: from a whole pair on,
  /// and whole register tiles; keys that nobody sees will be hidden.
  RowRange part_of(const RowRange& some, const RowRange& rows) const {
    const RowRange seen = common(some, rows);
    if (seen.empty()) return {};
    const std::int64_t unit = channels_.products.keys;
    const std::int64_t last = (seen.last - rows.first + unit - 1) / unit;
    return {(seen.first - rows.first) / unit * unit, std::min(rows.last - rows.first, last * unit)};
  }

  /// Computes P, dS and the part of dQ of tile i; `start`: row of the run where the block begins.
  void meet_part(const PositionRun& run, std::int64_t start, std::size_t i) {
    PairedGradients& tile = tiles_[i];
    const RowRange& part = parts_[i];
    const std::int64_t count = part.last - part.first;
    for (std::int64_t done = 0; done < count; done += kChunk) {
      const RowRange rows{part.first + done, std::min(part.last, part.first + done + kChunk)};
      multiply(tile, rows);
      hide(tile, run, start, rows);
      differentiate({.scores = scores(),
                     .dp = dp(),
                     // With rows that fill the last pairs up: multiply() gave them weight 0.
                     .count = 2 * channels_.products.pairs_of(rows.last - rows.first),
                     .scale = static_cast<float>(block_.scale * std::numbers::log2e),
                     .lse = tile.lse(),
                     .delta = tile.delta(),
                     .lanes = tile.rows().count,
                     .rows = weights_.at(rows.first, static_cast<std::int64_t>(i)),
                     .ds = ds_.get() + done / 2 * kWidth});
    }
    // dQ of the tile += dS K, lanes along queries.
    channels_.products.add_weighted({.weights = ds_.get(),
                                     .pairs = channels_.products.pairs_of(count),
                                     .values = key_panels_.pair(part.first),
                                     .panel_stride = key_panels_.panel_stride(),
                                     .panels = channels_.products.panels_of(channels_.head_dim),
                                     .keep = nullptr,
                                     .acc = tile.dq()});
    // Infinite, NaN and subnormal numbers of K, which the panels hold as zeros.
    key_panels_.add_specials(part.first, count, ds_.get(), tile.dq());
  }

  /// S = Q Kᵀ and dP = dO Vᵀ for rows of the block at hand.
  void multiply(const PairedGradients& tile, const RowRange& rows) {
    multiply_lanes(tile.queries(), keys_, channels_.head_dim, rows, scores());
    multiply_lanes(tile.douts(), values_, channels_.v_dim, rows, dp());
    const std::int64_t count = rows.last - rows.first;
    const std::int64_t more = 2 * channels_.products.pairs_of(count) - count;  // without a key
    // P of a hidden score is 0 whatever lse is; dP is 0, so that memory brings no NaN.
    std::fill_n(scores() + count * kWidth, more * kWidth, kEmptyRowMax<float>);
    std::fill_n(dp() + count * kWidth, more * kWidth, 0.0f);
  }
  void multiply_lanes(const LaneRows& lanes, const PairedKeys& keys, std::int64_t channels,
                      const RowRange& rows, float* products) const {
    const std::int64_t count = rows.last - rows.first;
    channels_.products.score({.queries = lanes.pairs(),
                              .keys = keys.pairs(rows.first),
                              .pairs = channels_.products.pairs_of(channels),
                              .count = count,
                              .scores = products,
                              .tops = nullptr});
    if (lanes.has_subnormals()) lanes.add_subnormal_rows(keys.raw(rows.first), count, products);
    if (keys.has_subnormals()) lanes.add_subnormal_keys(keys.raw(rows.first), count, products);
  }

  /// Hides scores of `rows` of the block that begins at row `start` of the run.
  void hide(const PairedGradients& tile, const PositionRun& run, std::int64_t start,
            const RowRange& rows) {
    const std::int64_t first = start + rows.first, last = start + rows.last;
    const RowRange& all = tile.sight().view().all;
    // As in the forward pass: some rows lie outside of those that every lane sees.
    if (first < all.first || last > all.last) {
      hide_unseen(tile.sight().bounds(), first, last - first, scores());
    }
    if (!block_.mask.has_bits()) return;
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t key = run.first + row * run.stride;
      for (std::int64_t lane = 0; lane < tile.rows().count; ++lane) {
        if (block_.mask.bits_allow(tile.rows().positions[lane], key)) continue;
        scores()[(row - first) * kWidth + lane] = kEmptyRowMax<float>;
      }
    }
  }

  /// dV += Pᵀ dO and dK += dSᵀ Q for the block at hand, whose first row is row `at` of K and V.
  /// Keys that the same tiles look at are summed together.
  void add_to_keys(std::int64_t at) {
    std::vector<std::int64_t>& edges = edges_;
    edges.clear();
    for (std::size_t i = 0; i < used_; ++i) {
      if (!parts_[i].empty()) edges.insert(edges.end(), {parts_[i].first, parts_[i].last});
    }
    std::ranges::sort(edges);
    // Between two neighbouring edges the tiles that look at a key are always the same.
    for (std::size_t n = 0; n + 1 < edges.size(); ++n) {
      if (edges[n] < edges[n + 1]) add_to_some_keys(at, {edges[n], edges[n + 1]});
    }
  }
  void add_to_some_keys(std::int64_t at, const RowRange& keys) {
    std::int64_t first = std::ssize(parts_), last = 0;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(used_); ++i) {
      // From the first to the last tile that looks at the keys; tiles between have weights of 0.
      if (common(parts_[static_cast<std::size_t>(i)], keys).empty()) continue;
      first = std::min(first, i);
      last = i + 1;
    }
    if (last == 0) return;
    const WeightRows weights = weights_.at(keys.first, 0);
    RowPanels::WeightedSum sum{.weights = weights.p,
                               .weight_stride = weights.stride,
                               .keys = keys.last - keys.first,
                               .first_tile = first,
                               .last_tile = last,
                               .sums = job_.sums.dv + (at + keys.first) * channels_.v_dim};
    douts_.add_to(sum);
    sum.weights = weights.ds;
    sum.sums = job_.sums.dk + (at + keys.first) * channels_.head_dim;
    queries_.add_to(sum);
  }

  float* scores() { return scores_.get(); }
  float* dp() { return scores_.get() + kChunk * kWidth; }

  const PairedBackwardJob& job_;
  const Block<BFloat16>& block_;
  const PairedChannels channels_;
  PairedKeys keys_, values_;            ///< of the block at hand
  ValueBlock key_panels_;               ///< the keys again
  RowPanels queries_, douts_;           ///< of the queries at hand
  WeightMemory weights_;                ///< P and dS of both
  AlignedArray<float> scores_;          ///< S and dP of a chunk of keys: (kChunk, lanes) each
  AlignedArray<std::uint32_t> ds_;      ///< of one tile: (pairs of keys, lanes)
  std::vector<PairedGradients> tiles_;  ///< of the queries at hand
  std::vector<RowRange> parts_;         ///< of the block, that each tile looks at
  std::vector<std::int64_t> edges_;     ///< where they begin and end
  std::size_t used_ = 0;
};

}  // namespace

void backward(const Block<BFloat16>& block, const Products& products,
              const QueryGradients<BFloat16>& given, const BlockGradients<BFloat16>& sums) {
  const PairedBackwardJob job{.block = block,
                              .given = given,
                              .sums = sums,
                              .products = products,
                              .positions = block.queries.to_list()};
  share_out_slices(block, job.positions, PairedBackwardWorker::rows_at_once(block),
                   [&] { return PairedBackwardWorker(job); });
}

}  // namespace ringlab::cpu::bf16_dot
