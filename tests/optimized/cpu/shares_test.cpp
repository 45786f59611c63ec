// How the kernels' work is cut into parts, and the order in which parts add to the same numbers.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "optimized/cpu/in_order.h"
#include "optimized/cpu/key_slices.h"
#include "optimized/cpu/parallel.h"
#include "optimized/cpu/row_shares.h"

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

TEST(InOrder, steps_of_a_chain_come_in_the_order_of_its_parts) {
  constexpr std::int64_t kParts = 12, kChain = 4, kSteps = 50;
  for (int time = 0; time < 20; ++time) {
    InOrder order(kParts, kChain);
    std::vector<std::string> log(static_cast<std::size_t>(kParts / kChain * kSteps));
    share_out(kParts, 5, [&] {
      return [&](std::int64_t part) {
        for (std::int64_t step = 0; step < kSteps; ++step) {
          order.await(part, step);
          log[static_cast<std::size_t>(part / kChain * kSteps + step)] +=
              std::to_string(part % kChain);
          order.pass(part);
        }
      };
    });
    for (const std::string& entry : log) EXPECT_EQ(entry, "0123");
  }
}

TEST(InOrder, nobody_waits_for_an_abandoned_part) {
  InOrder order(4, 4);
  const auto run = [&] {
    share_out(4, 4, [&] {
      return [&](std::int64_t part) {
        order.await(part, 0);
        if (part == 1) {
          order.abandon(part);
          throw std::runtime_error("part 1");
        }
        order.pass(part);
        order.await(part, 1);
        order.pass(part);
      };
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
}

}  // namespace
}  // namespace ringlab::cpu
