#include "optimized/cuda/visible_keys.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "reference/core/error.h"

namespace ringlab::cuda {
namespace {

void check_mask(const Mask& mask) {
  if (!mask.has_bits()) return;
  throw_usage_error(
      {.where = "mask " + mask.text(),
       .expected = "a mask under which a query sees one interval of keys",
       .actual = "a bit matrix",
       .hint = "Run it on the CPU, or say it with causal, window, documents, prefix"});
}

// Rows are counted in 32 bits on the device.
void check_rows(const char* which, const Positions& positions) {
  if (positions.size() <= INT32_MAX) return;
  throw_usage_error({.where = which,
                     .expected = "fewer than 2^31 rows in a chunk",
                     .actual = std::to_string(positions.size()),
                     .hint = "Split the sequence over more ranks"});
}

/// The runs of a chunk's positions, each with the number of rows before it.
class ChunkRows {
 public:
  explicit ChunkRows(const Positions& keys) : runs_(keys.runs()) {
    std::int64_t rows = 0;
    std::int64_t after = -1;  // the greatest position so far
    for (const PositionRun& run : runs_) {
      if (run.first <= after) complain(run.first, after);
      after = run.first + (run.count - 1) * run.stride;
      rows_before_.push_back(rows);
      rows += run.count;
    }
  }

  /// The first row that stands at `position` or after it.
  /// It is in the last run that begins at `position` or before, or the next run's first row.
  std::int32_t row_at(std::int64_t position) const {
    const auto later = std::upper_bound(  // the first run that begins after `position`
        runs_.begin(), runs_.end(), position,
        [](std::int64_t value, const PositionRun& run) { return value < run.first; });
    if (later == runs_.begin()) return 0;
    const PositionRun& run = *(later - 1);
    const std::int64_t before = rows_before_[static_cast<std::size_t>(later - runs_.begin() - 1)];
    const std::int64_t into = (position - run.first) / run.stride;
    // For a position between two of a stride, the next row is the first that stands after it.
    const bool between = (position - run.first) % run.stride != 0;
    return static_cast<std::int32_t>(before + std::min(run.count, into + (between ? 1 : 0)));
  }

 private:
  [[noreturn]] static void complain(std::int64_t position, std::int64_t after) {
    throw_usage_error(
        {.where = "positions of keys",
         .expected = "positions that increase from row to row",
         .actual = std::to_string(position) + " after " + std::to_string(after),
         .hint = "Sort the rows of the chunk: what a query sees must be one interval of them"});
  }

  const std::vector<PositionRun>& runs_;
  std::vector<std::int64_t> rows_before_;
};

// Turns every empty range into {0, 0}, so that kernels compare with nothing else.
KeyRange unless_empty(const KeyRange& range) {
  return range.last > range.first ? range : KeyRange{};
}

TileKeys seen_together(std::span<const KeyRange> rows) {
  KeyRange any{INT32_MAX, 0};
  KeyRange all{0, INT32_MAX};
  for (const KeyRange& row : rows) {
    // `all` shrinks with every row, and is empty once a row sees nothing; such a row
    // says nothing about `any`.
    all = {std::max(all.first, row.first), std::min(all.last, row.last)};
    if (row.last <= row.first) continue;
    any = {std::min(any.first, row.first), std::max(any.last, row.last)};
  }
  return {unless_empty(any), unless_empty(all)};
}

}  // namespace

std::vector<KeyRange> visible_rows(const Mask& mask, const Positions& queries,
                                   const Positions& keys) {
  check_mask(mask);
  check_rows("queries", queries);
  check_rows("keys", keys);
  const ChunkRows chunk(keys);
  std::vector<KeyRange> rows;
  rows.reserve(static_cast<std::size_t>(queries.size()));
  for (const PositionRun& run : queries.runs()) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const KeyInterval seen = mask.interval(run.first + i * run.stride);
      // Positions seen.begin … seen.end - 1 are rows from the first one not
      // before to the first one behind.
      rows.push_back(unless_empty({chunk.row_at(seen.begin), chunk.row_at(seen.end)}));
    }
  }
  return rows;
}

bool positions_increase(const Positions& keys) {
  std::int64_t after = -1;
  for (const PositionRun& run : keys.runs()) {
    if (run.first <= after) return false;
    after = run.first + (run.count - 1) * run.stride;
  }
  return true;
}

std::vector<TileKeys> visible_to_tiles(std::span<const KeyRange> rows, std::int32_t tile_queries) {
  // Tiles count queries of one head; all heads of a rank have the same.
  assert(tile_queries > 0);
  const auto height = static_cast<std::size_t>(tile_queries);
  std::vector<TileKeys> tiles;
  tiles.reserve((rows.size() + height - 1) / height);
  for (std::size_t first = 0; first < rows.size(); first += height) {
    tiles.push_back(seen_together(rows.subspan(first, std::min(height, rows.size() - first))));
  }
  return tiles;
}

bool sees_all(std::span<const KeyRange> rows, std::int64_t keys) {
  return std::ranges::all_of(
      rows, [&](const KeyRange& row) { return row.first <= 0 && row.last >= keys; });
}

}  // namespace ringlab::cuda
