#include "optimized/cuda/cudnn/mask_pieces.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "optimized/cuda/visible_keys.h"
#include "reference/core/layout.h"

namespace ringlab::cudnn {
namespace {

using cuda::KeyRange;

/// By what the type says of itself.
bool sees(const MaskPiece& piece, std::int32_t i, std::int32_t j) {
  if (piece.rises && j > i + piece.key_count() - piece.query_count()) return false;
  return !piece.leaves || j >= i;
}

/// How often each pair is in a piece, and whether pieces keep their word otherwise.
std::string wrong_pieces(const std::vector<KeyRange>& rows, std::int32_t keys) {
  std::vector<std::vector<int>> times(rows.size(),
                                      std::vector<int>(static_cast<std::size_t>(keys)));
  std::int32_t done = 0;
  for (const MaskPiece& piece : cut_mask(rows)) {
    if (piece.queries.first < done) return "queries are out of order";
    done = piece.queries.last;
    if (piece.query_count() < 1) return "a piece has no queries";
    if ((piece.rises || piece.leaves) && piece.key_count() < piece.query_count()) {
      return "fewer keys than queries at a diagonal";
    }
    for (std::int32_t i = 0; i < piece.query_count(); ++i) {
      bool any = false;
      for (std::int32_t j = 0; j < piece.key_count(); ++j) {
        if (!sees(piece, i, j)) continue;
        any = true;
        ++times[static_cast<std::size_t>(piece.queries.first + i)]
               [static_cast<std::size_t>(piece.keys.first + j)];
      }
      if (!any) return "a query of a piece sees nothing";
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int32_t j = 0; j < keys; ++j) {
      const int wanted = rows[i].first <= j && j < rows[i].last ? 1 : 0;
      if (times[i][static_cast<std::size_t>(j)] != wanted) {
        return "query " + std::to_string(i) + " meets key " + std::to_string(j) + " " +
               std::to_string(times[i][static_cast<std::size_t>(j)]) + " times";
      }
    }
  }
  return "";
}

TEST(MaskPieces, hold_every_pair_once_whatever_four_queries_see_of_four_keys) {
  constexpr std::int32_t kKeys = 4;
  std::vector<KeyRange> intervals = {{0, 0}};
  for (std::int32_t first = 0; first < kKeys; ++first) {
    for (std::int32_t last = first + 1; last <= kKeys; ++last) intervals.push_back({first, last});
  }
  for (const KeyRange& a : intervals) {
    for (const KeyRange& b : intervals) {
      for (const KeyRange& c : intervals) {
        for (const KeyRange& d : intervals) ASSERT_EQ(wrong_pieces({a, b, c, d}, kKeys), "");
      }
    }
  }
}

std::vector<KeyRange> seen(const std::string& mask, const Layout& queries, int rank,
                           const Layout& keys, int owner) {
  const Mask bound = parse_mask(mask).bind(queries.tokens(), keys.tokens());
  return cuda::visible_rows(bound, queries.positions(rank), keys.positions(owner));
}

/// Of the blocks of a ring of four ranks, 8 tokens each.
std::size_t most_pieces(const std::string& mask, LayoutKind kind) {
  const Layout layout(kind, 32, 4);
  std::size_t most = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for (int owner = 0; owner < 4; ++owner) {
      const auto rows = seen(mask, layout, rank, layout, owner);
      EXPECT_EQ(wrong_pieces(rows, 8), "") << mask << ", rank " << rank << ", owner " << owner;
      most = std::max(most, cut_mask(rows).size());
    }
  }
  return most;
}

TEST(MaskPieces, are_one_for_each_block_of_full_and_causal_rings) {
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    EXPECT_EQ(most_pieces("full", kind), 1u) << layout_name(kind);
    EXPECT_EQ(most_pieces("causal", kind), 1u) << layout_name(kind);
  }
}

TEST(MaskPieces, are_few_for_windows_documents_and_prefixes) {
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    for (const char* mask : {"window:5,0", "window:3,2", "causal+window:9,0", "prefix:11",
                             "documents:7,0,12,13", "causal+documents:7,12,13"}) {
      EXPECT_LE(most_pieces(mask, kind), 6u) << mask << ", " << layout_name(kind);
    }
  }
}

TEST(MaskPieces, are_the_ones_that_one_would_draw) {
  const Layout one(LayoutKind::contiguous, 6, 1), two(LayoutKind::zigzag, 8, 2);
  using Pieces = std::vector<MaskPiece>;
  EXPECT_EQ(cut_mask(seen("full", one, 0, one, 0)), (Pieces{{{0, 6}, {0, 6}}}));
  EXPECT_EQ(cut_mask(seen("causal", one, 0, one, 0)), (Pieces{{{0, 6}, {0, 6}, true}}));
  EXPECT_EQ(cut_mask(seen("causal+window:1,0", one, 0, one, 0)),
            (Pieces{{{0, 2}, {0, 2}, true}, {{2, 6}, {1, 6}, true, true}}));
  // Rank 0 of two has the first and the last quarter, rank 1 the ones between.
  EXPECT_EQ(cut_mask(seen("causal", two, 0, two, 1)), (Pieces{{{2, 4}, {0, 4}}}));
  EXPECT_EQ(cut_mask(seen("causal", two, 1, two, 0)), (Pieces{{{0, 4}, {0, 2}}}));
}

TEST(MaskPieces, leave_out_what_sees_nothing) {
  EXPECT_TRUE(cut_mask({}).empty());
  const std::vector<KeyRange> rows = {{0, 0}, {0, 2}, {0, 0}, {0, 0}};
  EXPECT_EQ(cut_mask(rows), (std::vector<MaskPiece>{{{1, 2}, {0, 2}}}));
}

/// Layouts that differ leave no diagonal: a piece for each query, which is refused when it is many.
TEST(MaskPieces, are_many_where_keys_lie_otherwise_than_queries) {
  const Layout striped(LayoutKind::striped, 32, 4), whole(LayoutKind::contiguous, 32, 4);
  EXPECT_GE(cut_mask(seen("causal", striped, 0, whole, 1)).size(), 2u);
}

}  // namespace
}  // namespace ringlab::cudnn
