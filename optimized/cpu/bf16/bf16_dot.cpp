#include "optimized/cpu/bf16/bf16_dot.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "optimized/cpu/bf16/bf16_dot_memory.h"
#include "optimized/cpu/row_shares.h"

namespace ringlab::cpu::bf16_dot {
namespace {

float scale_of(const Block<BFloat16>& block) {  // of scores, in powers of two
  return static_cast<float>(block.scale * std::numbers::log2e);
}

// A head's last part may be short; with a few parts each, threads end together.
constexpr std::int64_t kPartsPerThread = 4;

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// A worker on some tiles of queries of one head against all keys of a block: they share each block
/// of keys that is read.
class Worker {
 public:
  Worker(const Block<BFloat16>& block, const std::vector<std::int64_t>& positions,
         const Products& products)
      : block_(block),
        positions_(positions),
        channels_{block.q.extents.channels, block.v.extents.channels, products},
        keys_(block.tiles.keys, channels_.head_dim, products),
        values_(block.tiles.keys, channels_.v_dim, Apart::not_finite, products),
        // Room for whole groups of pairs that are summed together; rows without a key are hidden.
        scores_(aligned_array<float>(2 * products.pairs_of(block.tiles.keys) * kWidth)),
        lanes_(aligned_array<float>(2 * kWidth)) {
    const std::int64_t tiles = rows_of(block, products) / kWidth;
    for (std::int64_t i = 0; i < tiles; ++i) tiles_.emplace_back(channels_);
  }

  /// Rows that the tiles of a worker hold: more than block.tiles.queries if every thread still has
  /// enough to do, because loading blocks costs much when the products are this fast.
  static std::int64_t rows_of(const Block<BFloat16>& block, const Products& products) {
    const Extents& q = block.q.extents;
    const std::int64_t wished = products.groups * block.tiles.queries;
    const bool enough = q.batch * q.heads * (q.tokens / wished) >= kPartsPerThread * block.threads;
    const std::int64_t held = std::min(enough ? wished : block.tiles.queries, q.tokens);
    return std::max(kWidth, rounded_up(held, kWidth));
  }

  /// Some rows of one query head, rows_of() at most.
  void run(std::int64_t head, const RowRange& group, SoftmaxState<float>* states, float* accs) {
    const Multiplying here(channels_.products);
    const std::int64_t first = group.first, count = group.last - group.first;
    // Extents (batch, heads, tokens, channels) of queries and keys.
    const Extents &q = block_.q.extents, &k = block_.k.extents;
    // Query heads of one K/V head lie side by side, so the quotient is the
    // row of (batch, kv_heads).
    const std::int64_t kv_head = head / (q.heads / k.heads), at = head * q.tokens + first;
    // tiles with at least one row
    used_ = static_cast<std::size_t>(rounded_up(count, kWidth) / kWidth);
    for (std::size_t i = 0; i < used_; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) * kWidth;
      tiles_[i].load({.q = block_.q.data + (at + row) * q.channels,
                      .states = states + at + row,
                      .accs = accs + (at + row) * channels_.v_dim,
                      .positions = positions_.data() + first + row,
                      .count = std::min(kWidth, count - row)},
                     block_.mask);
    }
    take_in_runs(kv_head * k.tokens);
    for (std::size_t i = 0; i < used_; ++i) {
      const std::int64_t row = at + static_cast<std::int64_t>(i) * kWidth;
      tiles_[i].store(states + row, accs + row * channels_.v_dim);
    }
  }

 private:
  /// `start`: row of K and V where the head begins.
  /// Takes runs in the order of memory: the sums of a row have one order whatever the tiles are.
  void take_in_runs(std::int64_t start) {
    for (const PositionRun& run : block_.keys.runs()) {
      for (std::size_t i = 0; i < used_; ++i) tiles_[i].sight().look_at(run);
      for (std::int64_t first = 0; first < run.count; first += block_.tiles.keys) {
        take_in_rows(run, {first, std::min(run.count, first + block_.tiles.keys)}, start);
      }
      start += run.count;
    }
  }

  /// `start`: row of K and V where the run begins.
  void take_in_rows(const PositionRun& run, const RowRange& rows, std::int64_t start) {
    bool loaded = false;
    for (std::size_t i = 0; i < used_; ++i) {
      // Rows that some query of the tile sees; a block that no tile looks at is never packed.
      const RowRange some = common(rows, tiles_[i].sight().view().some);
      if (some.empty()) continue;
      if (!loaded) load(start + rows.first, rows.last - rows.first);
      loaded = true;
      // The part is widened to whole pairs and register tiles; keys that nobody sees will be
      // hidden.
      const std::int64_t unit = channels_.products.keys;
      const std::int64_t skipped = (some.first - rows.first) / unit * unit;
      const std::int64_t last = rows.first + rounded_up(some.last - rows.first, unit);
      take_in_part(tiles_[i], run, {rows.first + skipped, std::min(rows.last, last)}, skipped);
    }
  }

  void load(std::int64_t row, std::int64_t count) {
    keys_.load(block_.k.data + row * channels_.head_dim, count);
    values_.load(block_.v.data + row * channels_.v_dim, count);
  }

  /// Takes `part`, rows of the run; the first of them is row `skipped` of the block at hand: scores,
  /// weights, then the accumulator.
  void take_in_part(PairedQueries& tile, const PositionRun& run, const RowRange& part,
                    std::int64_t skipped) {
    score_part(tile, run, part, skipped);
    const std::int64_t count = part.last - part.first;
    const std::int64_t pairs = channels_.products.pairs_of(count);
    // Rows that only fill the last pairs up get the score -inf, and so no weight.
    std::fill_n(scores_.get() + count * kWidth, (2 * pairs - count) * kWidth, kEmptyRowMax<float>);
    const bool rescale = weigh({.scores = scores_.get(),
                                .count = 2 * pairs,
                                .tops = tops(),
                                .scale = scale_of(block_),
                                .row_max = tile.row_max(),
                                .row_sum = tile.row_sum(),
                                .keep = keep()});
    const auto* const weights = reinterpret_cast<const std::uint32_t*>(scores_.get());
    channels_.products.add_weighted({.weights = weights,
                                     .pairs = pairs,
                                     .values = values_.pair(skipped),
                                     .panel_stride = values_.panel_stride(),
                                     .panels = channels_.products.panels_of(channels_.v_dim),
                                     .keep = rescale ? keep() : nullptr,
                                     .acc = tile.acc()});
    // Infinite and NaN values were packed as zeros; they count where their weight is not 0.
    values_.add_specials(skipped, count, weights, tile.acc());
  }

  void score_part(const PairedQueries& tile, const PositionRun& run, const RowRange& part,
                  std::int64_t skipped) {
    const std::int64_t count = part.last - part.first;
    const LaneRows& queries = tile.queries();
    float* const scores = scores_.get();
    channels_.products.score({.queries = queries.pairs(),
                              .keys = keys_.pairs(skipped),
                              .pairs = channels_.products.pairs_of(channels_.head_dim),
                              .count = count,
                              .scores = scores,
                              .tops = tops()});
    // Lost products are added before scores are hidden, and maxima are taken last.
    if (queries.has_subnormals()) queries.add_subnormal_rows(keys_.raw(skipped), count, scores);
    if (keys_.has_subnormals()) queries.add_subnormal_keys(keys_.raw(skipped), count, scores);
    const RowRange& all = tile.sight().view().all;
    // True when some lane does not see all rows of `part`; every lane sees the rows of `all`.
    const bool partial = part.first < all.first || part.last > all.last;
    if (partial) hide_unseen(tile.sight().bounds(), part.first, count, scores);
    if (block_.mask.has_bits()) hide_bits(tile, run, part);
    // Maxima from score() are of scores before they were changed here, and are found again.
    if (partial || queries.has_subnormals() || keys_.has_subnormals() || block_.mask.has_bits()) {
      find_tops(scores, count, tops());
    }
  }

  /// Hides the pairs that a bit matrix does not allow.
  /// The bits of a matrix are asked for by global positions, not by rows.
  void hide_bits(const PairedQueries& tile, const PositionRun& run, const RowRange& part) {
    for (std::int64_t row = part.first; row < part.last; ++row) {
      const std::int64_t key = run.first + row * run.stride;
      float* const scores = scores_.get() + (row - part.first) * kWidth;
      for (std::int64_t lane = 0; lane < tile.rows().count; ++lane) {
        if (!block_.mask.bits_allow(tile.rows().positions[lane], key)) {
          scores[lane] = kEmptyRowMax<float>;
        }
      }
    }
  }

  float* tops() { return lanes_.get(); }
  float* keep() { return lanes_.get() + kWidth; }

  const Block<BFloat16>& block_;
  const std::vector<std::int64_t>& positions_;  ///< of the block's queries
  const PairedChannels channels_;
  PairedKeys keys_;             ///< the block at hand
  ValueBlock values_;           ///< the same
  AlignedArray<float> scores_;  ///< (keys of a block, lanes), then weights
  AlignedArray<float> lanes_;   ///< tops and keep of the tile at hand
  std::vector<PairedQueries> tiles_;
  std::size_t used_ = 0;
};

}  // namespace

bool available() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// Modifiers and dropout need f32 scores: those blocks are widened instead.
bool takes(const Block<BFloat16>& block) {
  if (!block.is_plain()) return false;
  const float scale = scale_of(block);
  return scale >= std::numeric_limits<float>::min() && scale <= std::numeric_limits<float>::max();
}

void forward(const Block<BFloat16>& block, const Products& products, SoftmaxState<float>* states,
             float* accs) {
  const std::vector<std::int64_t> positions = block.queries.to_list();
  // A worker for each thread, made by that thread: packing and scratch are its own.
  share_out_rows(block, Worker::rows_of(block, products), kWidth, [&] {
    return [&, worker = Worker(block, positions, products)](std::int64_t head,
                                                            const RowRange& rows) mutable {
      worker.run(head, rows, states, accs);
    };
  });
}

}  // namespace ringlab::cpu::bf16_dot
