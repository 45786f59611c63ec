// The keys of a chunk, cut into slices that threads take one by one in the backward pass, and where
// queries are few.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optimized/cpu/visible_rows.h"
#include "reference/core/positions.h"

namespace ringlab::cpu {

/// Some rows of a run of keys: one block of the kernel.
struct KeyRows {
  std::size_t run;     ///< number of the run
  RowRange rows;       ///< counted from the start of the run
  std::int64_t start;  ///< row of the chunk where the run begins
};
using KeySlice = std::vector<KeyRows>;

/// Least keys of a slice in the backward pass: enough that reading the queries again for every
/// slice costs little, and few enough that there is work for several threads. It does not depend on
/// the number of threads, because the order of sums must not.
inline constexpr std::int64_t kSliceKeys = 1024;

/// Blocks of at most `block_keys` keys that do not cross runs, in slices of about `slice_keys` keys.
inline std::vector<KeySlice> key_slices(const Positions& keys, std::int64_t block_keys,
                                        std::int64_t slice_keys = kSliceKeys) {
  std::vector<KeySlice> slices;
  std::int64_t held = slice_keys, start = 0;
  for (std::size_t run = 0; run < keys.runs().size(); ++run) {
    const std::int64_t count = keys.runs()[run].count;
    for (std::int64_t first = 0; first < count; first += block_keys) {
      if (held >= slice_keys) {
        slices.emplace_back();
        held = 0;
      }
      const RowRange rows{first, std::min(count, first + block_keys)};
      slices.back().push_back({run, rows, start});
      held += rows.last - rows.first;
    }
    start += count;
  }
  return slices;
}

}  // namespace ringlab::cpu
