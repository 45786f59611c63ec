#include "optimized/cuda/visible_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/layout.h"

namespace ringlab::cuda {
namespace {

/// What must hold of the intervals of one chunk against mask.allows(), pair by pair.
void expect_pairs(const Mask& mask, const Positions& queries, const Positions& keys,
                  const std::string& what) {
  const std::vector<KeyRange> rows = visible_rows(mask, queries, keys);
  ASSERT_EQ(static_cast<std::int64_t>(rows.size()), queries.size()) << what;
  for (std::int64_t i = 0; i < queries.size(); ++i) {
    const KeyRange& row = rows[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      ASSERT_EQ(row.first <= j && j < row.last, mask.allows(queries[i], keys[j]))
          << what << ", query row " << i << ", key row " << j;
    }
    if (row.last <= row.first) {
      ASSERT_EQ(row.first, 0) << what;
      ASSERT_EQ(row.last, 0) << what;
    }
  }
}

void expect_tiles(const Mask& mask, const Positions& queries, const Positions& keys,
                  std::int32_t height, const std::string& what) {
  const std::vector<TileKeys> tiles = visible_to_tiles(visible_rows(mask, queries, keys), height);
  ASSERT_EQ(static_cast<std::int64_t>(tiles.size()), (queries.size() + height - 1) / height);
  for (std::int64_t t = 0; t * height < queries.size(); ++t) {
    const TileKeys& tile = tiles[static_cast<std::size_t>(t)];
    KeyRange hull{INT32_MAX, 0};
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      bool some = false;
      bool each = true;
      for (std::int64_t i = t * height; i < std::min(queries.size(), (t + 1) * height); ++i) {
        const bool seen = mask.allows(queries[i], keys[j]);
        some |= seen;
        each &= seen;
      }
      if (some)
        hull = {std::min(hull.first, static_cast<std::int32_t>(j)),
                static_cast<std::int32_t>(j + 1)};
      ASSERT_EQ(tile.all.first <= j && j < tile.all.last, each) << what << ", key row " << j;
    }
    if (hull.last == 0) hull = {};
    ASSERT_EQ(tile.any.first, hull.first) << what << ", tile " << t;
    ASSERT_EQ(tile.any.last, hull.last) << what << ", tile " << t;
    if (tile.all.last > tile.all.first) {
      ASSERT_GE(tile.all.first, tile.any.first) << what;
      ASSERT_LE(tile.all.last, tile.any.last) << what;
    }
  }
}

std::string documents_of(std::int64_t tokens) {
  const std::int64_t a = tokens / 3;
  const std::int64_t b = tokens / 5;
  return "documents:" + std::to_string(a) + ",0," + std::to_string(b) + "," +
         std::to_string(tokens - a - b);
}

std::vector<Mask> masks_for(std::int64_t q_tokens, std::int64_t kv_tokens) {
  std::vector<Mask> masks;
  for (const std::string& text :
       {std::string("full"), std::string("causal"), std::string("window:0,0"),
        std::string("window:3,1"), std::string("window:inf,2"), std::string("window:2,inf"),
        std::string("causal+window:4,inf"), std::string("prefix:5"), documents_of(kv_tokens),
        "causal+" + documents_of(kv_tokens)}) {
    masks.push_back(parse_mask(text).bind(q_tokens, kv_tokens));
  }
  return masks;
}

TEST(VisibleKeys, are_what_the_mask_allows_for_every_pair_of_chunks_and_tile_height) {
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    for (const auto& [q_tokens, kv_tokens] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{23, 23}, {17, 29}, {29, 17}, {2, 3}}) {
      for (const int ranks : {1, 2, 3, 5}) {
        const Layout queries(kind, q_tokens, ranks);
        const Layout keys(kind, kv_tokens, ranks);
        for (const Mask& mask : masks_for(q_tokens, kv_tokens)) {
          for (int pair = 0; pair < ranks * ranks; ++pair) {
            const Positions& mine = queries.positions(pair / ranks);
            const Positions& theirs = keys.positions(pair % ranks);
            const std::string what = mask.text() + ", " + std::string(layout_name(kind)) + ", " +
                                     std::to_string(q_tokens) + " x " + std::to_string(kv_tokens) +
                                     ", chunks " + std::to_string(pair / ranks) + " and " +
                                     std::to_string(pair % ranks) + " of " + std::to_string(ranks);
            expect_pairs(mask, mine, theirs, what);
            for (const std::int32_t height : {1, 4, 128}) {
              expect_tiles(mask, mine, theirs, height, what);
            }
          }
        }
      }
    }
  }
}

TEST(VisibleKeys, of_queries_in_any_order_come_in_that_order) {
  const Mask mask = parse_mask("causal").bind(10, 10);
  const auto rows = visible_rows(mask, Positions::from_list({7, 2, 9, 0}), Positions::all(10));
  const std::vector<std::int32_t> lasts = {8, 3, 10, 1};
  for (std::size_t i = 0; i < lasts.size(); ++i) EXPECT_EQ(rows[i].last, lasts[i]);
}

TEST(VisibleKeys, of_ragged_runs_are_found_by_search) {
  const Positions keys(std::vector<PositionRun>{{3, 4, 5}, {40, 1, 1}, {50, 3, 7}, {90, 2, 1}});
  for (const Mask& mask : masks_for(100, 100)) {
    expect_pairs(mask, Positions::all(100), keys, mask.text());
  }
}

TEST(VisibleKeys, of_a_million_queries_against_as_many_runs_take_no_quadratic_time) {
  // Pairs of neighbours with gaps of many lengths: half as many runs as keys.
  std::vector<PositionRun> runs;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < 300'000; ++i) {
    runs.push_back({at, 2, 1});
    at += 3 + i % 2;
  }
  const Positions keys(runs);
  const Mask mask = parse_mask("causal").bind(at, at);
  const auto rows = visible_rows(mask, Positions::all(at), keys);
  EXPECT_EQ(rows.back().last, keys.size());
}

TEST(VisibleKeys, refuse_a_bit_matrix) {
  BitMask bits{.q_tokens = 1,
               .kv_tokens = 1,
               .bits = std::vector<std::uint8_t>(1, std::uint8_t{1}),
               .source = "m.npy"};
  const Mask mask = Mask({bits}).bind(1, 1);
  EXPECT_THROW(visible_rows(mask, Positions::all(1), Positions::all(1)), Error);
}

TEST(VisibleKeys, refuse_keys_out_of_order_and_say_where) {
  const Mask mask = Mask().bind(9, 9);
  for (const std::vector<std::int64_t>& list :
       {std::vector<std::int64_t>{3, 2}, std::vector<std::int64_t>{0, 1, 2, 8, 5},
        std::vector<std::int64_t>{4, 5, 6, 6}}) {
    try {
      visible_rows(mask, Positions::all(9), Positions::from_list(list));
      ADD_FAILURE() << "took keys out of order";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(error.parts().actual,
                std::to_string(list.back()) + " after " + std::to_string(list[list.size() - 2]));
      EXPECT_FALSE(error.parts().hint.empty());
    }
  }
}

TEST(VisibleKeys, of_nothing_are_nothing) {
  EXPECT_TRUE(visible_rows(Mask().bind(3, 3), Positions(), Positions::all(3)).empty());
  EXPECT_TRUE(visible_to_tiles({}, 128).empty());
  const auto rows = visible_rows(Mask().bind(3, 3), Positions::all(3), Positions());
  for (const KeyRange& row : rows) EXPECT_EQ(row.last, 0);
}

}  // namespace
}  // namespace ringlab::cuda
