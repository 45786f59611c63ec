// The rows of a K/V chunk that each query of a tile may see, run by run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/core/mask.h"
#include "reference/core/positions.h"

namespace ringlab::cpu {

/// Rows first … last-1.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool empty() const { return last <= first; }
};

inline RowRange common(const RowRange& a, const RowRange& b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

/// The rows of `run`, counted from its start, whose positions lie in `keys`.
inline RowRange rows_in(const PositionRun& run, const KeyInterval& keys) {
  const auto row_at_or_after = [&](std::int64_t position) {
    if (position <= run.first) return std::int64_t{0};
    return std::min(run.count, (position - run.first - 1) / run.stride + 1);
  };
  const RowRange rows{row_at_or_after(keys.begin), row_at_or_after(keys.end)};
  return rows.empty() ? RowRange{} : rows;
}

/// The rows of a run that all queries of a tile together see.
struct TileView {
  RowRange some = {};  ///< no query sees rows outside
  RowRange all = {};   ///< every query sees rows inside

  /// Takes one more query in.
  void add(const RowRange& rows, bool is_first) {
    if (is_first) {
      some = all = rows;
      return;
    }
    all = common(all, rows);
    if (rows.empty()) return;
    some = some.empty()
               ? rows
               : RowRange{std::min(some.first, rows.first), std::max(some.last, rows.last)};
  }
};

}  // namespace ringlab::cpu
