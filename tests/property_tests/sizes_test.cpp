// Laws of long rows: mistakes that only large sizes show, and the bounds from norms.
#include <gtest/gtest.h>

#include <algorithm>

#include "property_tests/generators/cases.h"
#include "property_tests/generators/reach.h"
#include "property_tests/laws/sizes/norm_bounds.h"
#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

TEST(LongRows, one_wrong_row_in_thousands_is_found_by_the_law_that_leaves_none_out) {
  for (const Mistake mistake : {Mistake::row_2047_dropped, Mistake::row_700_of_squares_dropped}) {
    EXPECT_TRUE(finds("every_row", mistake));
    for (const char* law : {"many_keys", "many_queries", "many_tiles", "equals_reference"}) {
      EXPECT_FALSE(finds(law, mistake)) << law;
    }
  }
}

TEST(LongRows, a_third_tile_that_is_skipped_is_found_where_there_are_three) {
  EXPECT_TRUE(finds("many_tiles", Mistake::third_tile_of_keys_skipped));
  EXPECT_TRUE(finds("every_row", Mistake::third_tile_of_keys_skipped));
  for (const char* law : {"many_keys", "many_queries", "equals_reference"}) {
    EXPECT_FALSE(finds(law, Mistake::third_tile_of_keys_skipped)) << law;
  }
}

TEST(LongRows, keys_that_16_bits_do_not_count_are_found_where_there_are_as_many) {
  EXPECT_TRUE(finds("far_positions", Mistake::keys_counted_in_16_bits));
  for (const char* law : {"many_keys", "every_row", "equals_reference"}) {
    EXPECT_FALSE(finds(law, Mistake::keys_counted_in_16_bits)) << law;
  }
}

TEST(LongRows, a_right_subject_breaks_none_of_their_laws) {
  for (const char* law :
       {"many_keys", "many_queries", "many_tiles", "whole_heads", "every_row", "far_positions"}) {
    EXPECT_FALSE(finds(law, Mistake::none)) << law;
  }
}

TEST(LongRows, laws_that_cost_more_have_fewer_cases_and_one_at_least) {
  const Subject subject = naive_subject();
  EXPECT_EQ(verify_law(subject, find_law("every_row"), {.cases_per_law = 3}).cases, 1);
  EXPECT_EQ(verify_law(subject, find_law("many_tiles"), {.cases_per_law = 60}).cases, 2);
}

TEST(Reach, of_the_first_round_leaves_cases_as_they_are_drawn) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draws one(seed), other(seed);
    const Case c = random_case(one);
    EXPECT_EQ(reached_case(one, c, reach_of_round(0)), random_case(other));
  }
}

std::int64_t greatest_of(const Shape& s) {
  return std::max({s.q_tokens, s.kv_tokens, s.head_dim, s.v_dim, s.q_heads, s.batch});
}

TEST(Reach, of_later_rounds_is_come_to_in_one_case_in_ten_and_never_gone_beyond) {
  for (const Reach& reach : kReaches) {
    if (reach.from_round == 0) continue;
    const Reach& first = kReaches.front();
    int larger = 0;
    std::int64_t tokens = 0, channels = 0, group = 0, batch = 0;
    int ranks = 0;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
      Draws draws(seed);
      const Case before = random_case(draws);
      const Case c = reached_case(draws, before, reach);
      larger += !(c == before);
      // A few queries have many keys in every round.
      if (c.shape.q_tokens > 4) tokens = std::max({tokens, c.shape.q_tokens, c.shape.kv_tokens});
      channels = std::max({channels, c.shape.head_dim, c.shape.v_dim});
      group = std::max(group, c.shape.q_heads / c.shape.kv_heads);
      batch = std::max(batch, c.shape.batch);
      ranks = std::max(ranks, c.ranks);
      EXPECT_EQ(from_token(to_token(c)), c);
      EXPECT_LE(greatest_of(c.shape),
                std::max<std::int64_t>({301, reach.tokens, reach.channels, 2 * reach.group}));
    }
    EXPECT_NEAR(larger, 300, 60);
    EXPECT_GT(tokens, first.tokens);
    EXPECT_LE(tokens, reach.tokens);
    EXPECT_GT(channels, first.channels);
    EXPECT_LE(channels, reach.channels);
    EXPECT_GT(group, first.group);
    EXPECT_LE(group, reach.group);
    EXPECT_GT(batch, first.batch);
    EXPECT_LE(batch, reach.batch);
    EXPECT_GT(ranks, first.ranks);
    EXPECT_LE(ranks, reach.ranks);
  }
}

TEST(Reach, of_the_laws_of_sizes_grows_with_the_round_that_a_seed_names) {
  for (const char* id : {"many_tiles", "every_row", "far_positions"}) {
    const Law& law = find_law(id);
    std::int64_t largest = 0;
    for (const Reach& reach : kReaches) {
      Case c;
      c.seed = reach.from_round * kCaseSeeds + 7;
      const Case shaped = law.shape_case(c);
      EXPECT_GT(shaped.shape.kv_tokens, largest) << id;
      EXPECT_EQ(from_token(to_token(fitted(shaped))), fitted(shaped)) << id;
      largest = shaped.shape.kv_tokens;
    }
  }
}

TEST(Reach, of_the_largest_round_is_right_in_a_right_subject) {
  VerifyOptions options{.seed = 3, .round = kReaches.back().from_round, .cases_per_law = 30};
  for (const char* law : {"equals_reference", "P16", "P32"}) {
    EXPECT_FALSE(verify_law(naive_subject(), find_law(law), options).failure) << law;
  }
}

/// Profiles that each have another of the terms.
std::vector<NumericsProfile> profiles(DType dtype, std::int64_t keys) {
  const NumericsProfile plain = carried_profile(dtype, keys);
  std::vector<NumericsProfile> all(6, plain);
  all[1].u_probability = 0x1p-8, all[1].p_underflow = 0x1p-134;
  all[2].u_partial = 0x1p-8;
  all[3].u_query = 0x1p-8;
  all[4].lse_merges = 3;
  all[5].u_wire = 0x1p-4, all[5].wire_floor = 0x1p-9, all[5].wire_underflow = 0x1p-20;
  return all;
}

TEST(BoundsFromNorms, are_never_below_those_of_the_pairs) {
  std::int64_t compared = 0, finite = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Draws draws(seed);
    Case c = random_case(draws);
    c.modifiers = {};
    const Trial trial = make_trial(c);
    const AttentionInput input = trial.input();
    const ExactForward exact = exact_forward(input);
    for (const NumericsProfile& profile : profiles(c.dtype, c.shape.kv_tokens)) {
      const ForwardTolerance sharp = forward_tolerance(input, exact, profile);
      const ForwardTolerance coarse = tolerance_by_norms(input, exact, profile);
      const auto check = [&](const Tensor<double>& below, const Tensor<double>& above) {
        for (std::size_t n = 0; n < below.values().size(); ++n) {
          ++compared;
          finite += std::isfinite(above.values()[n]);
          ASSERT_LE(below.values()[n], above.values()[n]) << describe(c);
        }
      };
      check(sharp.out, coarse.out);
      check(sharp.lse, coarse.lse);
    }
  }
  EXPECT_GT(2 * finite, compared) << "most of them say something";
}

}  // namespace
}  // namespace ringlab::verify
