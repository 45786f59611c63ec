// How the kernels' work is cut into parts, and the order in which parts add to the same numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "optimized/cpu/in_order.h"
#include "optimized/cpu/key_slices.h"
#include "optimized/cpu/parallel.h"
#include "optimized/cpu/row_shares.h"
#include "optimized/cpu/slice_shares.h"

namespace ringlab::cpu {
namespace {

TEST(RowGroups, hold_every_row_once_and_end_in_single_tiles_for_several_threads) {
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t rows : {0, 1, 47, 48, 49, 192, 1000, 4096}) {
      std::int64_t next = 0;
      for (const RowRange& group : row_groups(rows, 192, 48, threads)) {
        EXPECT_EQ(group.first, next);
        EXPECT_LE(group.last - group.first, threads > 1 && rows - next <= threads * 192 ? 48 : 192);
        EXPECT_FALSE(group.empty());
        next = group.last;
      }
      EXPECT_EQ(next, rows);
    }
  }
}

TEST(KeySlices, hold_every_key_once_in_blocks_that_do_not_cross_runs) {
  const Positions positions({{.first = 0, .count = 1500, .stride = 1},
                             {.first = 4000, .count = 40, .stride = 1},
                             {.first = 5000, .count = 2600, .stride = 3}});
  for (const std::int64_t block : {1, 100, 128, 4000}) {
    std::vector<std::int64_t> next(3, 0);
    const std::vector<std::int64_t> starts = {0, 1500, 1540};
    for (const KeySlice& slice : key_slices(positions, block)) {
      std::int64_t held = 0;
      for (const KeyRows& keys : slice) {
        EXPECT_LT(held, kSliceKeys);  // was there need of another block?
        EXPECT_EQ(keys.rows.first, next[keys.run]);
        EXPECT_LE(keys.rows.last - keys.rows.first, block);
        EXPECT_EQ(keys.start, starts[keys.run]);
        next[keys.run] = keys.rows.last;
        held += keys.rows.last - keys.rows.first;
      }
      EXPECT_GT(held, 0);
    }
    EXPECT_EQ(next, (std::vector<std::int64_t>{1500, 40, 2600}));
  }
  EXPECT_TRUE(key_slices(Positions(), 128).empty());
}

constexpr std::int64_t kPlaces = 4, kSteps = 50;

/// Part p of every line takes part in a step unless the step's p-th bit is set.
std::vector<std::vector<bool>> every_choice_of_parts() {
  std::vector<std::vector<bool>> choice(kPlaces, std::vector<bool>(kSteps));
  for (std::int64_t place = 0; place < kPlaces; ++place) {
    for (std::int64_t step = 0; step < kSteps; ++step) {
      choice[static_cast<std::size_t>(place)][static_cast<std::size_t>(step)] =
          (step >> place & 1) == 0;
    }
  }
  return choice;
}

TEST(InOrder, steps_of_a_line_come_in_the_order_of_the_parts_that_take_part) {
  constexpr std::int64_t kLines = 3;
  for (int time = 0; time < 20; ++time) {
    InOrder order(kLines, every_choice_of_parts());
    std::vector<std::string> log(static_cast<std::size_t>(kLines * kSteps));
    share_out(kLines * kPlaces, 5, [&] {
      return [&](std::int64_t part) {
        const std::int64_t line = part % kLines, place = part / kLines;
        for (std::int64_t step = 0; step < kSteps; ++step) {
          if (!order.takes_part(place, step)) continue;
          order.await(line, place, step);
          log[static_cast<std::size_t>(line * kSteps + step)] += std::to_string(place);
          order.pass(line, place, step);
        }
      };
    });
    for (std::int64_t i = 0; i < kLines * kSteps; ++i) {
      std::string expected;
      for (std::int64_t place = 0; place < kPlaces; ++place) {
        if ((i % kSteps >> place & 1) == 0) expected += std::to_string(place);
      }
      EXPECT_EQ(log[static_cast<std::size_t>(i)], expected);
    }
  }
}

TEST(InOrder, nobody_waits_for_an_abandoned_part) {
  InOrder order(1, std::vector(4, std::vector<bool>(2, true)));
  const auto run = [&] {
    share_out(4, 4, [&] {
      return [&](std::int64_t part) {
        order.await(0, part, 0);
        if (part == 1) {
          order.abandon(0, part);
          throw std::runtime_error("part 1");
        }
        order.pass(0, part, 0);
        order.await(0, part, 1);
        order.pass(0, part, 1);
      };
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
}

/// One meeting: the first key of the slice, the query head, the first query row.
struct Meeting {
  std::int64_t kv_head = 0, key = 0, head = 0, row = 0;
  auto operator<=>(const Meeting&) const = default;
};

/// Writes down who met whom, and in which order slices added to dq.
struct Witness {
  std::vector<Meeting>& met;
  std::vector<Meeting>& added;
  std::mutex& mutex;
  Meeting last = {};

  void meet_queries(std::int64_t kv_head, const KeySlice& slice, std::int64_t head,
                    const RowRange& rows) {
    const std::lock_guard lock(mutex);
    last = {kv_head, slice.front().start + slice.front().rows.first, head, rows.first};
    met.push_back(last);
  }
  void add_to_dq(std::int64_t head, const RowRange& rows) {
    EXPECT_EQ(head, last.head);
    EXPECT_EQ(rows.first, last.row);
    const std::lock_guard lock(mutex);
    added.push_back(last);
  }
};

TEST(GroupsFromTheEnd, hold_every_row_once_in_an_order_that_their_size_does_not_change) {
  for (const std::int64_t queries : {0, 1, 100, 1152, 1153, 4000}) {
    std::vector<std::int64_t> alone;
    for (const RowRange& row : groups_from_the_end(queries, 1)) alone.push_back(row.first);
    for (const std::int64_t rows : {7, 48, 192, 5000}) {
      std::vector<std::int64_t> order;
      for (const RowRange& group : groups_from_the_end(queries, rows)) {
        EXPECT_LE(group.last - group.first, rows);
        for (std::int64_t row = group.first; row < group.last; ++row) order.push_back(row);
      }
      EXPECT_EQ(order, alone);
    }
    std::ranges::sort(alone);
    EXPECT_EQ(std::ssize(alone), queries);
    EXPECT_TRUE(alone.empty() || alone.back() == queries - 1);
  }
}

TEST(SliceShares, meet_every_slice_that_is_seen_and_no_other) {
  const std::int64_t tokens = 3000;
  const Mask mask = parse_mask("causal+window:1500,0").bind(tokens, tokens);
  const Positions all = Positions::all(tokens);
  const Tensor<float> q({1, 4, tokens, 1}), k({1, 2, tokens, 1});
  std::vector<Meeting> expected;
  for (std::int64_t head = 0; head < 4; ++head) {
    for (const RowRange& rows : groups_from_the_end(tokens, 700)) {
      for (const std::int64_t key : {0, 1024, 2048}) {
        const bool seen = rows.last > key && rows.first - 1500 < key + 1024;
        if (seen) expected.push_back({head / 2, key, head, rows.first});
      }
    }
  }
  std::ranges::sort(expected);
  for (const int threads : {1, 3}) {
    std::vector<Meeting> met, added;
    std::mutex mutex;
    const Block<float> block{.mask = mask,
                             .queries = all,
                             .keys = all,
                             .tiles = {100, 128},
                             .q = q.view(),
                             .k = k.view(),
                             .v = k.view(),
                             .threads = threads};
    share_out_slices(block, all.to_list(), 700,
                     [&] { return Witness{.met = met, .added = added, .mutex = mutex}; });
    std::ranges::sort(met);
    EXPECT_EQ(met, expected);
    // To the same rows the slices add in the order of their keys.
    const auto same_rows = [](const Meeting& m) { return std::pair(m.head, m.row); };
    std::ranges::stable_sort(added, {}, same_rows);
    EXPECT_TRUE(std::ranges::is_sorted(
        added, {}, [](const Meeting& m) { return std::tuple(m.head, m.row, m.key); }));
    EXPECT_EQ(added.size(), expected.size());
  }
}

}  // namespace
}  // namespace ringlab::cpu
