// Laws of long rows: mistakes that only large sizes show, and the bounds from norms.
#include <gtest/gtest.h>

#include <random>

#include "property_tests/generators/cases.h"
#include "property_tests/laws/sizes/norm_bounds.h"
#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

bool finds(const char* law, Mistake mistake) {
  const LawVerdict verdict = verify_law(naive_subject(mistake), find_law(law), {.shrink = false});
  EXPECT_TRUE(verdict.skipped.empty()) << law << ": " << verdict.skipped;
  return verdict.failure.has_value();
}

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
       {"many_keys", "many_queries", "many_tiles", "every_row", "far_positions"}) {
    EXPECT_FALSE(finds(law, Mistake::none)) << law;
  }
}

TEST(LongRows, laws_that_cost_more_have_fewer_cases_and_one_at_least) {
  const Subject subject = naive_subject();
  EXPECT_EQ(verify_law(subject, find_law("every_row"), {.cases_per_law = 3}).cases, 1);
  EXPECT_EQ(verify_law(subject, find_law("many_tiles"), {.cases_per_law = 60}).cases, 2);
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
