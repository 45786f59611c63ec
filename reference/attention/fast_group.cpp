#include "reference/attention/fast_group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "reference/attention/compensated.h"
#include "reference/attention/fast_error.h"

namespace ringlab::fast {
namespace {

constexpr std::int64_t kTiles = 4;      // of a group
constexpr std::size_t kAlignment = 64;  // bytes: the widest vector, and kGrain doubles
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 0x1.71547652b82fep+0, kLn2 = 0x1.62e42fefa39efp-1;

// A group is a part of the work: kTiles tiles of rows of one head, or what is left.
std::int64_t groups_per_head(const FastPlan& plan) {
  const std::int64_t rows = kTiles * tile_width();
  return (plan.rows_per_head() + rows - 1) / rows;
}

}  // namespace

Buffer::Buffer(std::int64_t count)
    : count_(count),
      values_(static_cast<double*>(std::aligned_alloc(
          kAlignment, static_cast<std::size_t>(whole_grains(count)) * sizeof(double)))) {
  if (!values_ && count > 0) throw std::bad_alloc();
  fill(0);
}

void Buffer::fill(double value) { std::fill_n(values_.get(), count_, value); }

GroupWorker::GroupWorker(const FastPlan& plan, ExactForward& result)
    : plan_(&plan),
      result_(&result),
      width_(tile_width()),
      // Whole grains, so that vectors need no tail.
      value_channels_(whole_grains(plan.input().problem.shape.v_dim)),
      tiles_(kTiles),
      packed_k_(kBlockKeys * plan.input().problem.shape.head_dim),
      packed_v_(kBlockKeys * value_channels_),
      weights_(kBlockKeys * width_),
      hidden_(kBlockKeys * width_),
      factor_(width_) {
  for (FastTile& tile : tiles_) {
    tile.queries = Buffer(plan.input().problem.shape.head_dim * width_);
    tile.acc = Buffer(value_channels_ * width_);
    for (Buffer* lanes : {&tile.row_max, &tile.row_sum, &tile.run_begin, &tile.run_end}) {
      *lanes = Buffer(width_);
    }
  }
}

std::int64_t GroupWorker::groups(const FastPlan& plan) {
  const Shape& shape = plan.input().problem.shape;
  return shape.batch * shape.q_heads * groups_per_head(plan);
}

void GroupWorker::operator()(std::int64_t group) {
  const Shape& shape = plan_->input().problem.shape;
  const std::int64_t per_head = groups_per_head(*plan_);
  const std::int64_t head = group / per_head;
  batch_ = head / shape.q_heads;
  q_head_ = head % shape.q_heads;
  kv_head_ = plan_->kv_head(q_head_);
  // The last rows first: under a causal mask they take longest.
  std::int64_t slot = (per_head - 1 - group % per_head) * kTiles * width_;
  tiles_in_use_ = 0;
  for (; tiles_in_use_ < kTiles && slot < plan_->rows_per_head(); slot += width_) {
    FastTile& tile = tiles_[static_cast<std::size_t>(tiles_in_use_++)];
    tile.slot = slot;
    tile.count = std::min(width_, plan_->rows_per_head() - slot);
    start(tile);
  }
  add_blocks();
  for (std::int64_t t = 0; t < tiles_in_use_; ++t) finish(tiles_[static_cast<std::size_t>(t)]);
}

// `reach` grows to hold every lane's run, `common` shrinks to what all see.
void GroupWorker::start(FastTile& tile) {
  tile.reach = {std::numeric_limits<std::int64_t>::max(), 0};
  tile.common = {0, std::numeric_limits<std::int64_t>::max()};
  for (std::int64_t lane = 0; lane < width_; ++lane) {
    // Lanes beyond the last row repeat it: they change neither.
    const KeyInterval run = plan_->visible().run(tile.slot + std::min(lane, tile.count - 1));
    tile.run_begin.data()[lane] = static_cast<double>(run.begin);
    tile.run_end.data()[lane] = static_cast<double>(run.end);
    tile.common = {std::max(tile.common.begin, run.begin), std::min(tile.common.end, run.end)};
    if (run.size() == 0) continue;
    tile.reach = {std::min(tile.reach.begin, run.begin), std::max(tile.reach.end, run.end)};
  }
  tile.keys = tile.blocks = tile.rescales = 0;
  tile.key_norm = 0;
  tile.value_largest.assign(static_cast<std::size_t>(plan_->input().problem.shape.v_dim), 0);
  tile.acc.fill(0);
  tile.row_sum.fill(0);
  tile.row_max.fill(-kInfinity);  // base 2, as everything here
  load_queries(tile);
}

void GroupWorker::load_queries(FastTile& tile) {
  const AttentionInput& input = plan_->input();
  // log2 e goes into the queries: powers of two cost less than exponentials.
  const double factor = input.problem.scale * kLog2E;
  std::vector<double> buffer;
  for (std::int64_t lane = 0; lane < width_; ++lane) {
    const std::int64_t slot = tile.slot + std::min(lane, tile.count - 1);
    double* column = tile.queries.data() + lane;
    const bool empty = plan_->visible().run(slot).size() == 0;  // then it may hold anything
    const double* q =
        empty ? nullptr : channels_of(input.q, batch_, q_head_, plan_->query(slot), buffer);
    for (std::int64_t c = 0; c < input.problem.shape.head_dim; ++c) {
      column[c * width_] = q == nullptr ? 0 : q[c] * factor;
    }
  }
}

void GroupWorker::add_blocks() {
  KeyInterval reach{std::numeric_limits<std::int64_t>::max(), 0};
  for (std::int64_t t = 0; t < tiles_in_use_; ++t) {
    const KeyInterval one = tiles_[static_cast<std::size_t>(t)].reach;
    if (one.size() == 0) continue;
    reach = {std::min(reach.begin, one.begin), std::max(reach.end, one.end)};
  }
  // Blocks outermost: one block of keys is read for all tiles while it is in the cache.
  for (std::int64_t block = reach.begin / kBlockKeys; block * kBlockKeys < reach.end; ++block) {
    block_.k = nullptr;  // until a tile needs it
    for (std::int64_t t = 0; t < tiles_in_use_; ++t) {
      FastTile& tile = tiles_[static_cast<std::size_t>(t)];
      const std::int64_t first = block * kBlockKeys;
      // Whole grains from the tile's first visible key to its last; masks hide the rest.
      const KeyInterval keys{
          std::max(first, tile.reach.begin / kGrain * kGrain),
          std::min(first + kBlockKeys, whole_grains(std::max<std::int64_t>(tile.reach.end, 0)))};
      if (tile.reach.size() > 0 && keys.size() > 0 && anyone_sees(tile, keys)) {
        add_block_to(tile, block, keys);
      }
    }
  }
}

bool GroupWorker::anyone_sees(const FastTile& tile, KeyInterval keys) const {
  for (std::int64_t lane = 0; lane < tile.count; ++lane) {
    const KeyInterval run = plan_->visible().run(tile.slot + lane);
    if (run.size() > 0 && run.begin < keys.end && run.end > keys.begin) return true;
  }
  return false;
}

Hiding GroupWorker::hiding(const FastTile& tile, KeyInterval keys) const {
  // Compares nothing where all lanes see all keys.
  if (plan_->visible().has_holes()) return Hiding::matrix;
  const bool all = tile.common.begin <= keys.begin && keys.end <= tile.common.end;
  return all ? Hiding::nothing : Hiding::runs;
}

void GroupWorker::add_block_to(FastTile& tile, std::int64_t block, KeyInterval keys) {
  if (block_.k == nullptr) point_to_keys(block);
  const std::int64_t skipped = keys.begin - block_.first_key;
  FastKeys part = block_;
  part.first_key = keys.begin;
  part.keys = keys.size();
  part.k += skipped * part.k_stride;
  part.v += skipped * part.v_stride;
  const Hiding how = hiding(tile, keys);
  if (how == Hiding::matrix) hide_by_matrix(tile, keys);
  const bool rescaled = add_block(part, {.queries = tile.queries.data(),
                                         .run_begin = tile.run_begin.data(),
                                         .run_end = tile.run_end.data(),
                                         .hidden = hidden_.data(),
                                         .weights = weights_.data(),
                                         .row_max = tile.row_max.data(),
                                         .row_sum = tile.row_sum.data(),
                                         .factor = factor_.data(),
                                         .acc = tile.acc.data(),
                                         .hiding = how});
  tile.rescales += rescaled;
  tile.keys += part.keys;
  ++tile.blocks;
  const KeySizes& sizes = plan_->keys(batch_, kv_head_);
  // Maxima over blocks that were visited, not over keys that were seen: cheaper, and no smaller.
  tile.key_norm = std::max(tile.key_norm, sizes.key_norm[static_cast<std::size_t>(block)]);
  const std::size_t channels = tile.value_largest.size();
  const double* largest = sizes.value_largest.data() + static_cast<std::size_t>(block) * channels;
  for (std::size_t c = 0; c < channels; ++c) {
    tile.value_largest[c] = std::max(tile.value_largest[c], largest[c]);
  }
}

void GroupWorker::point_to_keys(std::int64_t block) {
  const AttentionInput& input = plan_->input();
  const Shape& shape = input.problem.shape;
  const std::int64_t first = block * kBlockKeys;
  const KeyInterval keys{first, std::min(first + kBlockKeys, shape.kv_tokens)};
  block_ = {.first_key = first,
            .keys = keys.size(),
            .k = &input.k(batch_, kv_head_, first, 0),
            .k_stride = input.k.strides.token,
            .v = &input.v(batch_, kv_head_, first, 0),
            .v_stride = input.v.strides.token,
            .head_dim = shape.head_dim,
            .value_channels = value_channels_};
  const bool adjacent = input.k.strides.channel == 1 && input.v.strides.channel == 1;
  // K and V as they lie in memory, where rows are dense, no key is unseen and channels are grains.
  if (adjacent && value_channels_ == shape.v_dim && !plan_->has_unseen(block)) return;
  pack(keys);
  block_.k = packed_k_.data();
  block_.k_stride = shape.head_dim;
  block_.v = packed_v_.data();
  block_.v_stride = value_channels_;
}

void GroupWorker::pack(KeyInterval keys) {
  const AttentionInput& input = plan_->input();
  const Shape& shape = input.problem.shape;
  packed_k_.fill(0);  // what nobody sees, and what lies beyond the last key or channel
  packed_v_.fill(0);
  std::vector<double> buffer;
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    if (!plan_->visible().seen_by_any(j)) continue;
    const double* k = channels_of(input.k, batch_, kv_head_, j, buffer);
    std::copy_n(k, shape.head_dim, packed_k_.data() + (j - keys.begin) * shape.head_dim);
    const double* v = channels_of(input.v, batch_, kv_head_, j, buffer);
    std::copy_n(v, shape.v_dim, packed_v_.data() + (j - keys.begin) * value_channels_);
  }
}

void GroupWorker::hide_by_matrix(const FastTile& tile, KeyInterval keys) {
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    double* row = hidden_.data() + (j - keys.begin) * width_;
    for (std::int64_t lane = 0; lane < width_; ++lane) {
      const std::int64_t slot = tile.slot + std::min(lane, tile.count - 1);
      const bool seen =
          j < plan_->input().problem.shape.kv_tokens && plan_->visible().sees(slot, j);
      row[lane] = seen ? 0 : -kInfinity;
    }
  }
}

void GroupWorker::finish(FastTile& tile) {
  for (std::int64_t lane = 0; lane < width_; ++lane) {
    // The row sum is at least 1, but for a row that sees nothing.
    factor_.data()[lane] = 1 / std::max(tile.row_sum.data()[lane], 1.0);
  }
  double* acc = tile.acc.data();
  for (std::int64_t c = 0; c < plan_->input().problem.shape.v_dim; ++c, acc += width_) {
    for (std::int64_t lane = 0; lane < width_; ++lane) acc[lane] *= factor_.data()[lane];
  }
  for (std::int64_t lane = 0; lane < tile.count; ++lane) write_row(tile, lane);
}

void GroupWorker::write_row(FastTile& tile, std::int64_t lane) {
  const std::int64_t slot = tile.slot + lane;
  // A row that sees nothing is exact: out = 0, lse = -inf, errors 0.
  if (plan_->visible().run(slot).size() == 0) {
    result_->lse(batch_, q_head_, slot, 0) = -kInfinity;
    return;  // out and all errors are zero already
  }
  const Problem& problem = plan_->input().problem;
  const double row_max = tile.row_max.data()[lane], row_sum = tile.row_sum.data()[lane];
  // Back from base 2: only the maximum is in powers of two, the sum is a sum of weights.
  const double lse = row_max * kLn2 + std::log(row_sum);
  const RowError error = row_error({.head_dim = problem.shape.head_dim,
                                    .scale = std::abs(problem.scale),
                                    .query_norm = plan_->query_norm(batch_, q_head_, slot),
                                    .key_norm = tile.key_norm,
                                    .keys = tile.keys,
                                    .blocks = tile.blocks,
                                    .rescales = tile.rescales,
                                    .row_max = row_max,
                                    .row_sum = row_sum,
                                    .lse = lse});
  result_->lse(batch_, q_head_, slot, 0) = lse;
  result_->lse_error(batch_, q_head_, slot, 0) = error.lse;
  if (tile.value_largest.empty()) return;
  double* out = &result_->out(batch_, q_head_, slot, 0);
  double* out_error = &result_->out_error(batch_, q_head_, slot, 0);
  const double* acc = tile.acc.data() + lane;
  for (std::size_t c = 0; c < tile.value_largest.size(); ++c, acc += width_) {
    out[c] = *acc;
    out_error[c] = error.largest_share * tile.value_largest[c] +
                   kDivisionRounding * std::abs(*acc) + error.absolute;
  }
}

}  // namespace ringlab::fast
