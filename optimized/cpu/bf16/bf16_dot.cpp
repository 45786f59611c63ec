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
        // As many pairs of keys as are summed together: what is missing is hidden.
        most_scores_(2 * products.pairs_of(block.tiles.keys) * kWidth),
        scores_(aligned_array<float>(2 * most_scores_)),
        lanes_(aligned_array<float>(4 * kWidth)) {
    for (std::int64_t i = 0; i < rows_of(block) / kWidth; ++i) tiles_.emplace_back(channels_);
  }

  /// Rows that the tiles of a worker hold: twice as many as wished for if that leaves every thread
  /// enough to do, because blocks are dear to load when the products are this fast.
  static std::int64_t rows_of(const Block<BFloat16>& block) {
    const Extents& q = block.q.extents;
    const std::int64_t wished = 2 * block.tiles.queries;
    const bool enough = q.batch * q.heads * (q.tokens / wished) >= kPartsPerThread * block.threads;
    const std::int64_t held = std::min(enough ? wished : block.tiles.queries, q.tokens);
    return std::max(kWidth, rounded_up(held, kWidth));
  }

  /// Some rows of one query head, rows_of() at most.
  void run(std::int64_t head, const RowRange& group, SoftmaxState<float>* states, float* accs) {
    const Multiplying here(channels_.products);
    const std::int64_t first = group.first, count = group.last - group.first;
    // Both (batch, heads, tokens, channels).
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
  /// Runs in the order of memory: the sums of a row have one order whatever the tiles are.
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
    parts_.clear();
    for (std::size_t i = 0; i < used_; ++i) {
      // Rows that some query of the tile sees; a block that no tile looks at is never packed.
      const RowRange some = common(rows, tiles_[i].sight().view().some);
      if (some.empty()) continue;
      // The part is widened to whole pairs and register tiles; keys that nobody sees will be
      // hidden.
      const std::int64_t unit = channels_.products.keys;
      const std::int64_t skipped = (some.first - rows.first) / unit * unit;
      const std::int64_t last = rows.first + rounded_up(some.last - rows.first, unit);
      parts_.push_back({.tile = &tiles_[i],
                        .rows = {rows.first + skipped, std::min(rows.last, last)},
                        .skipped = skipped,
                        .buffer = channels_.products.score_and_weigh ? std::ssize(parts_) % 2 : 0});
    }
    if (parts_.empty()) return;
    load(start + rows.first, rows.last - rows.first);
    take_in_parts(run);
  }

  void load(std::int64_t row, std::int64_t count) {
    keys_.load(block_.k.data + row * channels_.head_dim, count);
    values_.load(block_.v.data + row * channels_.v_dim, count);
  }

  /// What a tile looks at of the block at hand.
  struct Part {
    PairedQueries* tile;
    RowRange rows;         ///< of the run
    std::int64_t skipped;  ///< rows of the block before them
    std::int64_t buffer;   ///< for the scores
    std::int64_t count() const { return rows.last - rows.first; }
  };

  /// Scores, weights, then the accumulator; the next part's scores beside a part's weights where
  /// that is possible.
  void take_in_parts(const PositionRun& run) {
    const auto together = channels_.products.score_and_weigh;
    for (std::size_t n = 0; n < parts_.size(); ++n) {
      const Part& part = parts_[n];
      const Part* const next = together && n + 1 < parts_.size() ? &parts_[n + 1] : nullptr;
      if (n == 0 || !together) {
        channels_.products.score(scoring(part));
        finish_scores(run, part);
      }
      const bool rescale = next ? together(scoring(*next), weighing(part)) : weigh(weighing(part));
      add(part, rescale);
      if (next) finish_scores(run, *next);
    }
  }

  Scoring scoring(const Part& part) {
    return {.queries = part.tile->queries().pairs(),
            .keys = keys_.pairs(part.skipped),
            .pairs = channels_.products.pairs_of(channels_.head_dim),
            .count = part.count(),
            .scores = scores(part),
            .tops = tops(part)};
  }
  Weighing weighing(const Part& part) {
    return {.scores = scores(part),
            .count = 2 * channels_.products.pairs_of(part.count()),
            .tops = tops(part),
            .scale = scale_of(block_),
            .row_max = part.tile->row_max(),
            .row_sum = part.tile->row_sum(),
            .keep = keep(part)};
  }

  /// After score(): what it lost, what is hidden, and what fills the pairs up.
  void finish_scores(const PositionRun& run, const Part& part) {
    const LaneRows& queries = part.tile->queries();
    float* const scores = this->scores(part);
    const std::int64_t count = part.count();
    // In this order: what was lost is added before scores are hidden, and maxima are taken last.
    if (queries.has_subnormals())
      queries.add_subnormal_rows(keys_.raw(part.skipped), count, scores);
    if (keys_.has_subnormals()) queries.add_subnormal_keys(keys_.raw(part.skipped), count, scores);
    const RowRange& all = part.tile->sight().view().all;
    // Part of the rows is unseen by some lane; `all` is what every lane sees.
    const bool partial = part.rows.first < all.first || part.rows.last > all.last;
    if (partial) hide_unseen(part.tile->sight().bounds(), part.rows.first, count, scores);
    if (block_.mask.has_bits()) hide_bits(run, part);
    // score() found the maxima of scores as they were before any of this changed them.
    if (partial || queries.has_subnormals() || keys_.has_subnormals() || block_.mask.has_bits()) {
      find_tops(scores, count, tops(part));
    }
    // What fills the pairs up has no weight: its score is -inf.
    const std::int64_t filled = 2 * channels_.products.pairs_of(count);
    std::fill_n(scores + count * kWidth, (filled - count) * kWidth, kEmptyRowMax<float>);
  }

  void add(const Part& part, bool rescale) {
    const auto* const weights = reinterpret_cast<const std::uint32_t*>(scores(part));
    float* const acc = part.tile->acc();
    channels_.products.add_weighted({.weights = weights,
                                     .pairs = channels_.products.pairs_of(part.count()),
                                     .values = values_.pair(part.skipped),
                                     .panel_stride = values_.panel_stride(),
                                     .panels = channels_.panels_of(channels_.v_dim),
                                     .keep = rescale ? keep(part) : nullptr,
                                     .acc = acc});
    // Infinite and NaN values were packed as zeros; they count where their weight is not 0.
    values_.add_specials(part.skipped, part.count(), weights, acc);
  }

  /// Asks a bit matrix about every pair.
  /// Positions and not rows: the bits of a matrix are asked for global positions.
  void hide_bits(const PositionRun& run, const Part& part) {
    const PairedQueryRows& queries = part.tile->rows();
    for (std::int64_t row = part.rows.first; row < part.rows.last; ++row) {
      const std::int64_t key = run.first + row * run.stride;
      float* const scores = this->scores(part) + (row - part.rows.first) * kWidth;
      for (std::int64_t lane = 0; lane < queries.count; ++lane) {
        if (!block_.mask.bits_allow(queries.positions[lane], key)) {
          scores[lane] = kEmptyRowMax<float>;
        }
      }
    }
  }

  float* scores(const Part& part) { return scores_.get() + part.buffer * most_scores_; }
  float* tops(const Part& part) { return lanes_.get() + 2 * part.buffer * kWidth; }
  float* keep(const Part& part) { return tops(part) + kWidth; }

  const Block<BFloat16>& block_;
  const std::vector<std::int64_t>& positions_;  ///< of the block's queries
  const PairedChannels channels_;
  PairedKeys keys_;    ///< the block at hand
  ValueBlock values_;  ///< the same
  const std::int64_t most_scores_;
  AlignedArray<float> scores_;  ///< of two parts: (keys of a block, lanes), then weights
  AlignedArray<float> lanes_;   ///< tops and keep of both
  std::vector<Part> parts_;     ///< of the block at hand
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
  share_out_rows(block, Worker::rows_of(block), kWidth, [&] {
    return [&, worker = Worker(block, positions, products)](std::int64_t head,
                                                            const RowRange& rows) mutable {
      worker.run(head, rows, states, accs);
    };
  });
}

}  // namespace ringlab::cpu::bf16_dot
