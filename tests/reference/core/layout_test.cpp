#include "reference/core/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "reference/core/error.h"
#include "reference/core/mask.h"

namespace ringlab {
namespace {

using List = std::vector<std::int64_t>;

constexpr LayoutKind kKinds[] = {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag};

template <class Visitor>
void for_each_small_layout(const Visitor& visit) {
  for (const LayoutKind kind : kKinds) {
    for (std::int64_t tokens = 0; tokens <= 40; ++tokens) {
      for (int ranks = 1; ranks <= 9; ++ranks) {
        SCOPED_TRACE(std::string(layout_name(kind)) + ", " + std::to_string(tokens) + " tokens, " +
                     std::to_string(ranks) + " ranks");
        visit(Layout(kind, tokens, ranks));
      }
    }
  }
}

List counting(std::int64_t tokens) {
  List list(static_cast<std::size_t>(tokens));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

List all_positions(const Layout& layout) {
  List all;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const List part = layout.positions(rank).to_list();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(LayoutTest, every_token_lies_on_exactly_one_rank) {
  for_each_small_layout([](const Layout& layout) {
    List all = all_positions(layout);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, counting(layout.tokens()));
  });
}

TEST(LayoutTest, each_rank_holds_its_tokens_in_ascending_order) {
  for_each_small_layout([](const Layout& layout) {
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const List part = layout.positions(rank).to_list();
      EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
    }
  });
}

TEST(LayoutTest, ranks_hold_numbers_of_tokens_that_differ_by_at_most_one) {
  for_each_small_layout([](const Layout& layout) {
    std::int64_t least = layout.tokens();
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      least = std::min(least, layout.positions(rank).size());
    }
    EXPECT_LE(layout.largest_chunk() - least, 1);
    EXPECT_EQ(layout.largest_chunk(), (layout.tokens() + layout.ranks() - 1) / layout.ranks());
  });
}

TEST(LayoutTest, contiguous_ranks_follow_one_another) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    EXPECT_EQ(all_positions(Layout(LayoutKind::contiguous, 23, ranks)), counting(23));
  }
  EXPECT_EQ(Layout(LayoutKind::contiguous, 5, 3).positions(0).to_list(), (List{0, 1}));
  EXPECT_EQ(Layout(LayoutKind::contiguous, 5, 3).positions(2).to_list(), (List{4}));
}

TEST(LayoutTest, striped_rank_r_holds_the_tokens_that_leave_remainder_r) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (std::int64_t tokens = 0; tokens <= 40; ++tokens) {
      const Layout layout(LayoutKind::striped, tokens, ranks);
      List expected(static_cast<std::size_t>(ranks));
      for (std::int64_t token = 0; token < tokens; ++token) {
        const int rank = static_cast<int>(token % ranks);
        auto& next_row = expected[static_cast<std::size_t>(rank)];
        ASSERT_EQ(layout.positions(rank)[next_row++], token);
      }
    }
  }
}

TEST(LayoutTest, zigzag_rank_r_holds_chunks_r_and_its_mirror_of_2p) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (std::int64_t tokens = 0; tokens <= 40; ++tokens) {
      // Deal the chunks out again: the first of each rank upwards, then the second downwards.
      const Layout layout(LayoutKind::zigzag, tokens, ranks);
      List dealt;
      const auto deal = [&](int rank, std::int64_t chunk, std::int64_t begin) {
        const std::int64_t length = (tokens + 2 * ranks - 1 - chunk) / (2 * ranks);
        const List part = layout.positions(rank).slice(begin, length).to_list();
        dealt.insert(dealt.end(), part.begin(), part.end());
        return begin + length;
      };
      List taken;
      for (int rank = 0; rank < ranks; ++rank) taken.push_back(deal(rank, rank, 0));
      for (int rank = ranks - 1; rank >= 0; --rank) {
        const std::int64_t end =
            deal(rank, 2 * ranks - 1 - rank, taken[static_cast<std::size_t>(rank)]);
        ASSERT_EQ(end, layout.positions(rank).size());
      }
      ASSERT_EQ(dealt, counting(tokens));
    }
  }
}

std::int64_t causal_pairs(const Layout& layout, int rank, int owner) {
  const Mask causal = Mask({CausalMask{}}).bind(layout.tokens(), layout.tokens());
  return causal.count(layout.positions(rank), layout.positions(owner));
}

TEST(LayoutTest, zigzag_balances_causal_work_exactly_in_every_hop_when_2p_divides_the_tokens) {
  for (std::int64_t ranks = 1; ranks <= 6; ++ranks) {
    for (std::int64_t chunk = 1; chunk <= 5; ++chunk) {
      const Layout layout(LayoutKind::zigzag, 2 * ranks * chunk, static_cast<int>(ranks));
      for (int rank = 0; rank < ranks; ++rank) {
        std::int64_t work = 0;
        for (int owner = 0; owner < ranks; ++owner) {
          const std::int64_t pairs = causal_pairs(layout, rank, owner);
          EXPECT_EQ(pairs, 2 * chunk * chunk + (owner == rank ? chunk : 0));
          work += pairs;
        }
        EXPECT_EQ(work * ranks, layout.tokens() * (layout.tokens() + 1) / 2);
      }
    }
  }
}

TEST(LayoutTest, contiguous_and_striped_causal_work_follow_their_closed_forms) {
  for (std::int64_t ranks = 1; ranks <= 6; ++ranks) {
    for (std::int64_t chunk = 1; chunk <= 5; ++chunk) {
      const int p = static_cast<int>(ranks);
      const Layout contiguous(LayoutKind::contiguous, ranks * chunk, p);
      const Layout striped(LayoutKind::striped, ranks * chunk, p);
      const std::int64_t triangle = chunk * (chunk + 1) / 2;
      for (int rank = 0; rank < p; ++rank) {
        for (int owner = 0; owner < p; ++owner) {
          EXPECT_EQ(causal_pairs(contiguous, rank, owner),
                    owner < rank ? chunk * chunk : (owner == rank ? triangle : 0));
          EXPECT_EQ(causal_pairs(striped, rank, owner),
                    owner <= rank ? triangle : triangle - chunk);
        }
      }
    }
  }
}

TEST(LayoutTest, more_ranks_than_tokens_leave_ranks_empty_and_lose_no_work) {
  for (const LayoutKind kind : kKinds) {
    const Layout layout(kind, 3, 7);
    std::int64_t work = 0;
    for (int rank = 0; rank < 7; ++rank) {
      EXPECT_LE(layout.positions(rank).size(), 1);
      for (int owner = 0; owner < 7; ++owner) work += causal_pairs(layout, rank, owner);
    }
    EXPECT_EQ(work, 6);
  }
}

TEST(LayoutTest, a_million_tokens_on_a_thousand_ranks_stay_a_few_runs) {
  constexpr std::int64_t kTokens = 1'000'003;
  for (const LayoutKind kind : kKinds) {
    const Layout layout(kind, kTokens, 1024);
    std::int64_t held = 0;
    for (int rank = 0; rank < 1024; ++rank) {
      EXPECT_LE(layout.positions(rank).runs().size(), kind == LayoutKind::zigzag ? 2u : 1u);
      held += layout.positions(rank).size();
    }
    EXPECT_EQ(held, kTokens);
  }
}

TEST(LayoutTest, given_lengths_make_contiguous_chunks_of_those_lengths) {
  const Layout layout = Layout::with_lengths({0, 4, 0, 1, 2, 0});
  EXPECT_EQ(layout.ranks(), 6);
  EXPECT_EQ(layout.tokens(), 7);
  EXPECT_EQ(layout.largest_chunk(), 4);
  EXPECT_EQ(layout.kind(), LayoutKind::contiguous);
  EXPECT_EQ(all_positions(layout), counting(7));
  EXPECT_TRUE(layout.positions(2).empty());
  EXPECT_EQ(layout.positions(4).to_list(), (List{5, 6}));
}

TEST(LayoutTest, lengths_that_are_no_layout_are_rejected) {
  EXPECT_THROW(Layout::with_lengths({}), Error);
  EXPECT_THROW(Layout::with_lengths({3, -1}), Error);
  EXPECT_THROW(Layout::with_lengths({INT64_MAX, 1}), Error);
}

TEST(LayoutTest, any_bijection_can_be_given_as_parts) {
  const Layout layout = Layout::from_parts(
      {Positions::from_list({5, 0}), Positions(), Positions::from_list({3, 1, 4, 2})});
  EXPECT_EQ(layout.tokens(), 6);
  EXPECT_EQ(layout.ranks(), 3);
  EXPECT_EQ(layout.positions(2)[2], 4);
  EXPECT_EQ(Layout::from_parts({Positions()}).tokens(), 0);
}

TEST(LayoutTest, parts_that_are_no_bijection_are_input_errors_that_name_the_position) {
  const auto message = [](std::vector<Positions> parts) {
    try {
      Layout::from_parts(std::move(parts));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message({Positions::all(2), Positions::from_list({1})}).find("position 1 of rank 1"),
            std::string::npos);
  EXPECT_NE(message({Positions::all(2), Positions::from_list({3})}).find("position 3 of rank 1"),
            std::string::npos);
  EXPECT_NE(message({Positions::from_list({0, 0})}).find("held twice"), std::string::npos);
  EXPECT_NE(message({Positions::from_list({1})}).find("outside"), std::string::npos);
  EXPECT_THROW(Layout::from_parts({}), Error);
}

TEST(LayoutTest, names_read_back_and_others_are_usage_errors) {
  for (const LayoutKind kind : kKinds) EXPECT_EQ(parse_layout(layout_name(kind)), kind);
  try {
    parse_layout("zig-zag");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("\"zig-zag\""), std::string::npos);
  }
}

TEST(LayoutTest, no_ranks_and_negative_tokens_are_rejected) {
  for (const LayoutKind kind : kKinds) {
    EXPECT_THROW(Layout(kind, 5, 0), Error);
    EXPECT_THROW(Layout(kind, 5, -2), Error);
    EXPECT_THROW(Layout(kind, -1, 2), Error);
  }
  EXPECT_EQ(Layout().ranks(), 0);
  EXPECT_EQ(Layout().largest_chunk(), 0);
}

}  // namespace
}  // namespace ringlab
