// The query rows of a block, shared out among threads in the forward pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/parallel.h"
#include "optimized/cpu/visible_rows.h"

namespace ringlab::cpu {

/// All rows, in groups that threads take one by one: of `group` rows, towards the end of `tile`
/// rows, so that no thread works much longer than the others.
inline std::vector<RowRange> row_groups(std::int64_t rows, std::int64_t group, std::int64_t tile,
                                        int threads) {
  std::vector<RowRange> groups;
  for (std::int64_t first = 0; first < rows; first = groups.back().last) {
    const bool near_the_end = threads > 1 && rows - first <= threads * group;
    groups.push_back({first, std::min(rows, first + (near_the_end ? tile : group))});
  }
  return groups;
}

/// Calls worker(head, rows) for all rows of every query head, in the groups of row_groups();
/// make_worker() gives each thread its `worker`. Heads are counted over all batches.
template <class Element, class MakeWorker>
void share_out_rows(const Block<Element>& block, std::int64_t group, std::int64_t tile,
                    const MakeWorker& make_worker) {
  const Extents& q = block.q.extents;
  const std::vector<RowRange> groups = row_groups(q.tokens, group, tile, block.threads);
  const std::int64_t count = std::ssize(groups);
  share_out(
      q.batch * q.heads * count, block.threads,
      [&] {
        return [&, worker = make_worker()](std::int64_t part) mutable {
          worker(part / count, groups[static_cast<std::size_t>(part % count)]);
        };
      },
      block.done);
}

}  // namespace ringlab::cpu
