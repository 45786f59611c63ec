#include "optimized/cuda/hopper/tile_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace ringlab::cuda {
namespace {

TEST(TileOrder, gives_every_tile_of_every_head_once) {
  for (const std::int32_t heads : {1, 2, 5, 12}) {
    for (const std::int32_t tiles : {1, 3, 8}) {
      for (const std::int32_t section : {1, 2, 5, 12}) {
        const TileOrder order{.heads = heads, .tiles = tiles, .section_heads = section};
        std::set<std::pair<int, int>> seen;
        for (std::int32_t i = 0; i < tile_count(order); ++i) {
          const TilePlace place = tile_at(order, i);
          EXPECT_TRUE(place.head >= 0 && place.head < heads);
          EXPECT_TRUE(place.tile >= 0 && place.tile < tiles);
          EXPECT_TRUE(seen.emplace(place.head, place.tile).second);
        }
        EXPECT_EQ(static_cast<int>(seen.size()), heads * tiles);
      }
    }
  }
}

TEST(TileOrder, ends_a_section_before_the_next_and_begins_the_last_with_the_last_tiles) {
  const TileOrder order{.heads = 7, .tiles = 4, .section_heads = 3};
  for (std::int32_t i = 1; i < tile_count(order); ++i) {
    const TilePlace before = tile_at(order, i - 1);
    const TilePlace place = tile_at(order, i);
    ASSERT_GE(place.head / 3, before.head / 3);
    const int step = place.tile - before.tile;
    if (place.head / 3 != before.head / 3) {
      ASSERT_EQ(step, 0) << "the next section begins where this one stopped";
    } else {
      ASSERT_TRUE(step == 0 || step == (place.head / 3 == 1 ? 1 : -1));
    }
  }
}

TEST(TurnOf, deals_every_number_once) {
  for (const std::int32_t blocks : {1, 2, 7, 132}) {
    std::set<std::int64_t> seen;
    for (std::int32_t round = 0; round < 5; ++round) {
      for (std::int32_t block = 0; block < blocks; ++block) {
        const std::int64_t turn = turn_of(block, blocks, round);
        EXPECT_EQ(turn / blocks, round);
        EXPECT_TRUE(seen.insert(turn).second);
      }
    }
  }
}

/// The most that one of 132 blocks gets, over the mean; the work of a causal tile is its number
/// plus one.
double imbalance(const TileOrder& order) {
  constexpr std::int32_t kBlocks = 132;
  std::vector<std::int64_t> work(kBlocks, 0);
  for (std::int32_t round = 0; round * kBlocks < tile_count(order); ++round) {
    for (std::int32_t block = 0; block < kBlocks; ++block) {
      const std::int64_t turn = turn_of(block, kBlocks, round);
      if (turn >= tile_count(order)) continue;
      const TilePlace place = tile_at(order, static_cast<std::int32_t>(turn));
      work[static_cast<std::size_t>(block)] += place.tile + 1;
    }
  }
  const auto all = static_cast<double>(std::accumulate(work.begin(), work.end(), std::int64_t{0}));
  return static_cast<double>(*std::max_element(work.begin(), work.end())) * kBlocks / all;
}

TEST(TurnOf, balances_causal_tiles_of_few_and_of_many_heads) {
  for (const auto& [heads, tiles, section] :
       std::vector<std::array<std::int32_t, 3>>{{64, 32, 16},
                                                {64, 256, 8},
                                                {32, 16, 32},
                                                {16, 128, 8},
                                                {128, 32, 64},
                                                {8, 1024, 1},
                                                {48, 85, 12},
                                                {40, 32, 16},
                                                {24, 100, 8}}) {
    EXPECT_LE(imbalance({heads, tiles, section}), 1.035) << heads << " x " << tiles;
  }
}

TEST(HeadsOfSection, are_whole_groups_that_fit_the_cache_and_at_least_one) {
  constexpr std::int64_t kMegabyte = 1 << 20;
  EXPECT_EQ(heads_of_section(4 * kMegabyte, 1, 64), 8);
  EXPECT_EQ(heads_of_section(4 * kMegabyte, 8, 256), 64);
  EXPECT_EQ(heads_of_section(100 * kMegabyte, 8, 64), 8);
  EXPECT_EQ(heads_of_section(kMegabyte, 1, 5), 5);
  EXPECT_EQ(heads_of_section(0, 1, 5), 5);
}

template <int kStages>
void expect_places() {
  PipelinePlace<kStages> place;
  for (int n = 0; n < 4 * kStages + 1; ++n) {
    EXPECT_EQ(place.stage, n % kStages);
    EXPECT_EQ(place.parity, n / kStages % 2);
    PipelinePlace<kStages> next = place;
    next.advance();
    EXPECT_EQ(next.before().stage, place.stage);
    EXPECT_EQ(next.before().parity, place.parity);
    place = next;
  }
}
TEST(PipelinePlace, is_the_buffer_and_the_parity_of_the_nth_use) {
  expect_places<1>();
  expect_places<2>();
  expect_places<3>();
}

TEST(KeyWalk, covers_what_a_tile_sees_and_calls_full_what_all_see_all_of) {
  for (const std::int32_t keys : {1, 3, 16}) {
    for (std::int32_t any_first = 0; any_first < 6; ++any_first) {
      for (std::int32_t any_last = any_first; any_last < 60; any_last += 7) {
        for (std::int32_t first = any_first; first <= any_last; first += 2) {
          for (std::int32_t last = first; last <= any_last; last += 3) {
            const KeyRange all = first < last ? KeyRange{first, last} : KeyRange{};
            const KeyWalk walk = walk_of({any_first, any_last}, all, keys);
            if (any_first == any_last) {
              EXPECT_EQ(walk.blocks, 0);
              continue;
            }
            EXPECT_EQ(walk.first, any_first);
            EXPECT_GE(walk.first + walk.blocks * keys, any_last);
            EXPECT_LT(walk.first + (walk.blocks - 1) * keys, any_last);
            for (std::int32_t block = 0; block < walk.blocks; ++block) {
              const std::int32_t begin = walk.first + block * keys;
              const bool full = begin >= all.first && begin + keys <= all.last;
              EXPECT_EQ(block >= walk.full_begin && block < walk.full_end, full);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ringlab::cuda
