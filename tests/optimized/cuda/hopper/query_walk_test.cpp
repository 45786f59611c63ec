// The walk of a block of keys over the queries that see it, against every pair.
#include "optimized/cuda/hopper/query_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "optimized/cuda/visible_keys.h"

namespace ringlab::cuda {
namespace {

/// Queries with random intervals of `keys` keys, or with alike ones: some tiles are then full.
std::vector<KeyRange> random_rows(std::mt19937& random, int queries, int keys) {
  const auto up_to = [&](int most) { return static_cast<int>(random() % (most + 1u)); };
  std::vector<KeyRange> rows;
  const bool alike = random() % 2 == 0;
  for (int row = 0; row < queries; ++row) {
    const int first = up_to(alike ? 2 : keys), last = alike ? keys - up_to(2) : up_to(keys);
    rows.push_back(first < last ? KeyRange{first, last} : KeyRange{});
  }
  return rows;
}

/// From the first tile that meets the keys or an earlier one to the last or a later one.
TileSpan random_span(std::mt19937& random, const QueryWalk& walk) {
  TileSpan met{walk.tiles(), 0};
  for (int tile = 0; tile < walk.tiles(); ++tile) {
    if (walk.meeting_of(tile) == TileMeeting::none) continue;
    met = {std::min(met.first, tile), tile + 1};
  }
  if (random() % 2 == 0) return met;
  return {met.first / 2, std::max(met.last, (met.last + walk.tiles() + 1) / 2)};
}

struct Walked {
  QueryWalk walk;
  std::vector<KeyRange> rows;
  int keys;

  /// Of the pairs of a tile and the block: those that see each other, and all there are or would
  /// be, were the last ones not missing.
  std::pair<int, int> count_pairs(int tile) const {
    const int tile_rows = walk.tile_queries();
    int seen = 0;
    for (int row = tile * tile_rows; row < (tile + 1) * tile_rows; ++row) {
      if (row >= static_cast<int>(rows.size())) break;
      const KeyRange sees = rows[static_cast<std::size_t>(row)];
      const int last = std::min(sees.last, walk.first_key + walk.block_keys);
      seen += std::max(0, last - std::max(sees.first, walk.first_key));
    }
    return {seen, tile_rows * walk.block_keys};
  }
};

TEST(QueryWalk, meets_every_tile_that_sees_a_key_once_for_every_head_and_knows_the_full_ones) {
  std::mt19937 random(7);
  int full = 0, partial = 0, skipped = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int queries = static_cast<int>(random() % 40), keys = 1 + static_cast<int>(random() % 30);
    Walked walked{.walk = {}, .rows = random_rows(random, queries, keys), .keys = keys};
    const std::vector<TileKeys> tiles = visible_to_tiles(walked.rows, 4);
    for (int first_key = 0; first_key < keys; first_key += 8) {
      walked.walk = {.mask_tiles = tiles.data(),
                     .mask_queries = 4,
                     .parts = 1 + static_cast<int>(random() % 3),
                     .queries = queries,
                     .heads = 1 + trial % 3,
                     .first_key = first_key,
                     .block_keys = 8,
                     .span = {}};
      walked.walk.span = random_span(random, walked.walk);
      std::vector<std::pair<int, int>> met;
      for (QueryWalk walk = walked.walk; walk.advance();) {
        met.emplace_back(walk.head, walk.tile);
        const auto [seen, all] = walked.count_pairs(walk.tile);
        EXPECT_EQ(walk.meeting == TileMeeting::full, seen == all) << trial;
        (walk.meeting == TileMeeting::full ? full : partial) += 1;
      }
      EXPECT_TRUE(std::is_sorted(met.begin(), met.end()));
      const std::set<std::pair<int, int>> different(met.begin(), met.end());
      EXPECT_EQ(different.size(), met.size());
      const int height = walked.walk.tile_queries();
      for (int head = 0; head < walked.walk.heads; ++head) {
        for (int tile = 0; tile * height < queries; ++tile) {
          if (different.contains({head, tile})) continue;
          EXPECT_EQ(walked.count_pairs(tile).first, 0) << trial;
          ++skipped;
        }
      }
    }
  }
  EXPECT_GT(full, 100);
  EXPECT_GT(partial, 100);
  EXPECT_GT(skipped, 100);
}

TEST(QueryWalk, has_no_tile_where_there_are_no_queries) {
  QueryWalk walk;
  walk.heads = 3;
  EXPECT_FALSE(walk.advance());
  EXPECT_EQ(walk.meeting, TileMeeting::none);
}

TEST(QueryWalk, gives_every_block_of_keys_of_every_head_to_one_thread_block) {
  const BlockShape shape{.batch = 2, .q_heads = 6, .kv_heads = 3, .keys = 300};
  for (int of_block : {1, 2}) {
    for (int section = of_block; section <= 12; section += of_block) {
      const BackwardOrder order{128, of_block, section};
      const int count = 3 * 12 / of_block;
      std::set<std::pair<int, int>> given;
      for (int index = 0; index < count; ++index) {
        const BlockKeys block = key_block_at(shape, order, index);
        const int first = index / (3 * section / of_block) * section;
        EXPECT_GE(block.first_head, first);
        EXPECT_LT(block.first_head, first + section);
        EXPECT_EQ(block.first_head % of_block, 0);
        EXPECT_EQ(block.kv_head, block.first_head / 2);
        if (section == 12) {
          EXPECT_EQ(block.first_key, index / (12 / of_block) * 128)
              << "all heads, early keys first";
        }
        given.emplace(block.first_head, block.first_key);
      }
      EXPECT_EQ(given.size(), static_cast<std::size_t>(count)) << section;
      EXPECT_EQ(given.rbegin()->first, 12 - of_block) << section;
    }
  }
}

}  // namespace
}  // namespace ringlab::cuda
