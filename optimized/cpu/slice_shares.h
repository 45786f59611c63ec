// The keys of a block, shared out among threads in the backward pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/in_order.h"
#include "optimized/cpu/key_slices.h"
#include "optimized/cpu/parallel.h"

namespace ringlab::cpu {

/// Rows of queries that keep their order: a multiple of the tiles of every kind of vectors.
inline constexpr std::int64_t kStretchRows = 1152;

/// All query rows in groups of at most `rows`. Stretches of kStretchRows come from the last to the
/// first, the groups of each in their order: sums over queries then do not depend on `rows`. Under
/// a causal mask every slice of keys begins with queries that all slices before it begin with
/// too, and ends early: threads that take the slices one by one wait neither for each other nor for
/// the last one.
inline std::vector<RowRange> groups_from_the_end(std::int64_t queries, std::int64_t rows) {
  std::vector<RowRange> groups;
  const std::int64_t stretches = (queries + kStretchRows - 1) / kStretchRows;
  for (std::int64_t stretch = stretches - 1; stretch >= 0; --stretch) {
    const std::int64_t end = std::min(queries, (stretch + 1) * kStretchRows);
    for (std::int64_t first = stretch * kStretchRows; first < end; first += rows) {
      groups.push_back({first, std::min(end, first + rows)});
    }
  }
  return groups;
}

/// The keys between the first and the last that any of these rows may see.
inline KeyInterval keys_of_rows(const Mask& mask, const std::vector<std::int64_t>& positions,
                                const RowRange& rows) {
  KeyInterval all{std::numeric_limits<std::int64_t>::max(), 0};
  for (std::int64_t row = rows.first; row < rows.last; ++row) {
    const KeyInterval keys = mask.interval(positions[static_cast<std::size_t>(row)]);
    if (keys.size() == 0) continue;
    all = {std::min(all.begin, keys.begin), std::max(all.end, keys.end)};
  }
  return all;
}

inline bool holds_any(const KeySlice& slice, const Positions& positions, const KeyInterval& keys) {
  return std::ranges::any_of(slice, [&](const KeyRows& block) {
    return !common(block.rows, rows_in(positions.runs()[block.run], keys)).empty();
  });
}

/// Meets, for every pair of a K/V head and a slice of its keys, all query heads that read it and
/// all their rows that may see some of it, `rows_at_once` at a time:
///     worker.meet_queries(kv_head, slice, head, rows)
///     worker.add_to_dq(head, rows)
/// Threads meet queries at the same time, and add to dQ slice after slice. make_worker() gives each
/// thread its `worker`. `positions`: of the queries. Heads are counted over all batches.
template <class Element, class MakeWorker>
void share_out_slices(const Block<Element>& block, const std::vector<std::int64_t>& positions,
                      std::int64_t rows_at_once, const MakeWorker& make_worker) {
  const std::vector<KeySlice> slices = key_slices(block.keys, block.tiles.keys);
  const std::vector<RowRange> groups = groups_from_the_end(block.q.extents.tokens, rows_at_once);
  const std::int64_t kv_heads = block.k.extents.batch * block.k.extents.heads;
  const std::int64_t q_per_kv = block.q.extents.heads / block.k.extents.heads;

  std::vector<std::vector<bool>> meets(slices.size());
  for (const RowRange& rows : groups) {
    const KeyInterval keys = keys_of_rows(block.mask, positions, rows);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      meets[i].push_back(holds_any(slices[i], block.keys, keys));
    }
  }
  InOrder one_by_one(kv_heads * q_per_kv, std::move(meets));

  const auto run = [&](auto& worker, std::int64_t kv_head, std::int64_t place) {
    for (std::int64_t head = kv_head * q_per_kv; head < (kv_head + 1) * q_per_kv; ++head) {
      for (std::int64_t step = 0; step < std::ssize(groups); ++step) {
        if (!one_by_one.takes_part(place, step)) continue;
        const RowRange& rows = groups[static_cast<std::size_t>(step)];
        worker.meet_queries(kv_head, slices[static_cast<std::size_t>(place)], head, rows);
        one_by_one.await(head, place, step);
        worker.add_to_dq(head, rows);
        one_by_one.pass(head, place, step);
      }
    }
  };
  share_out(
      kv_heads * std::ssize(slices), block.threads,
      [&] {
        return [&, worker = make_worker()](std::int64_t part) mutable {
          const std::int64_t kv_head = part % kv_heads, place = part / kv_heads;
          try {
            run(worker, kv_head, place);
          } catch (...) {
            for (std::int64_t i = 0; i < q_per_kv; ++i) {
              one_by_one.abandon(kv_head * q_per_kv + i, place);
            }
            throw;
          }
        };
      },
      block.done);
}

}  // namespace ringlab::cpu
