#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "property_tests/generators/cases.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

TEST(CaseGenerator, covers_every_class) {
  Draws draws(1);
  std::map<std::string, int> counts;
  constexpr int kCases = 4000;
  for (int i = 0; i < kCases; ++i) {
    for (const std::string& name : classes_of(random_case(draws))) ++counts[name];
  }
  std::vector<std::string> wanted = {"layout contiguous",
                                     "layout striped",
                                     "layout zigzag",
                                     "dtype f64",
                                     "dtype f32",
                                     "dtype f16",
                                     "dtype bf16",
                                     "mask full",
                                     "mask causal",
                                     "mask window",
                                     "mask documents",
                                     "mask prefix",
                                     "mask bits",
                                     "mask intersection",
                                     "transport threads",
                                     "transport simulated",
                                     "grouped heads",
                                     "rectangular",
                                     "v_dim is not head_dim",
                                     "no tokens",
                                     "more ranks than tokens",
                                     "ranks do not divide tokens",
                                     "one rank",
                                     "rendezvous sends",
                                     "tiles as kernels have them",
                                     "wide heads",
                                     "schedule ring",
                                     "schedule broadcast",
                                     "schedule allgather",
                                     "schedule bidirectional",
                                     "schedule double",
                                     "slots 1",
                                     "slots 2",
                                     "slots 3",
                                     "soft-capping",
                                     "ALiBi",
                                     "sinks",
                                     "dropout",
                                     "rows that see nothing",
                                     "tile tails",
                                     "backwards round the ring",
                                     "scale 1",
                                     "scale below 0",
                                     "scale 0",
                                     "three masks",
                                     "more than 3 batches",
                                     "more than 3 heads in a group",
                                     "heads above 64 channels"};
  for (int f = 0; f < kDrawnFamilies; ++f) {
    wanted.push_back("values " + std::string(family_name(static_cast<Family>(f))));
  }
  for (const std::string& name : wanted) {
    EXPECT_GE(counts[name], kCases / 50) << name << " is in fewer than 2 % of the cases";
    counts.erase(name);
  }
  EXPECT_TRUE(counts.empty()) << counts.begin()->first << " is not in the list above";
}

TEST(CaseGenerator, makes_only_valid_cases) {
  Draws draws(2);
  for (int i = 0; i < 2000; ++i) {
    const Case c = random_case(draws);
    ASSERT_NO_THROW(check_problem(make_problem(c))) << to_token(c);
    ASSERT_LE(c.shape.q_tokens, 71);
    ASSERT_EQ(fitted(c), c) << to_token(c);
  }
}

TEST(CaseGenerator, shrinks_to_valid_and_strictly_simpler_cases) {
  Draws draws(3);
  for (int i = 0; i < 300; ++i) {
    const Case c = random_case(draws);
    for (const Case& simpler : simpler_cases(c)) {
      ASSERT_LT(complexity(simpler), complexity(c)) << to_token(c) << " " << to_token(simpler);
      ASSERT_NO_THROW(check_problem(make_problem(simpler))) << to_token(simpler);
    }
  }
}

double largest(const std::vector<double>& numbers) {
  double most = 0;
  for (const double number : numbers) most = std::max(most, std::abs(number));
  return most;
}

// Kernels were found that take caps for whole numbers up to 32, slopes for at most 1, sinks for at most
// 4, gradients for at most 1000, or that go wrong behind a whole tile of keys or with a window.
TEST(CaseGenerator, reaches_what_kernels_may_have_cut_off) {
  Draws draws(6);
  std::map<std::string, int> counts;
  for (int i = 0; i < 4000; ++i) {
    const Case c = random_case(draws);
    const Modifiers made = make_problem(c).modifiers;
    counts["cap with a fraction"] += std::trunc(made.softcap) != made.softcap;
    counts["cap below 1"] += made.softcap > 0 && made.softcap < 1;
    counts["cap above 100"] += made.softcap > 100;
    counts["sink beyond 10"] += largest(made.sinks) > 10;
    counts["slope above 2"] += largest(made.alibi_slopes) > 2;
    counts["few queries"] += c.shape.q_tokens == 1 && c.shape.kv_tokens > 128;
    counts["wide window"] += c.shape.head_dim > 64 && c.mask.text().find("window") == 0;
    counts["large gradients"] += largest(make_dout(c).values()) > 1000;
    counts["small gradients"] += largest(make_dout(c).values()) < 1e-2;
  }
  for (const auto& [what, count] : counts) EXPECT_GE(count, 10) << what;
}

TEST(CaseGenerator, shrinks_every_case_down_to_one_with_nothing_simpler) {
  Draws draws(4);
  for (int i = 0; i < 200; ++i) {
    Case c = random_case(draws);
    for (auto next = simpler_cases(c); !next.empty(); next = simpler_cases(c)) {
      c = next[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(next.size())))];
    }
    EXPECT_EQ(c.shape, (Shape{1, 1, 1, 0, 0, 1, 1})) << to_token(c);
    EXPECT_EQ(c.mask.text(), "full");
    EXPECT_EQ(c.ranks, 1);
    EXPECT_EQ(c.family, Family::small_ints);
    EXPECT_EQ(c.dtype, DType::f32);
    EXPECT_EQ(c.schedule, ScheduleKind::ring);
    EXPECT_EQ(c.slots, 2);
    EXPECT_FALSE(c.modifiers.any());
  }
}

TEST(CaseGenerator, drops_the_modifiers_before_anything_else) {
  Case c;
  c.ranks = 3;
  c.modifiers = {.softcap = 5, .alibi = true, .sinks = true, .dropout_percent = 20};
  const Case first = simpler_cases(c).front();
  EXPECT_FALSE(first.modifiers.any());
  EXPECT_EQ(first.ranks, 3);
}

TEST(CaseGenerator, keeps_to_what_a_subject_can_do) {
  Draws draws(5);
  Capabilities can;
  can.dtypes = {DType::bf16};
  can.drop({Ability::many_ranks});
  for (int i = 0; i < 100; ++i) {
    const Case c = limited_to(random_case(draws), can);
    ASSERT_EQ(c.dtype, DType::bf16);
    ASSERT_EQ(c.ranks, 1);
    ASSERT_EQ(c.schedule, ScheduleKind::ring);
    ASSERT_EQ(c.slots, 2);
    ASSERT_FALSE(c.modifiers.any());
  }
}

TEST(CaseGenerator, keeps_to_masks_scales_and_lengths_that_a_subject_takes) {
  Draws draws(6);
  Capabilities can;
  can.dtypes = {DType::f32};
  can.drop({Ability::many_ranks, Ability::bit_masks});
  can.masks = {.intersections = false, .full = false};
  can.nonpositive_scale = false;
  can.token_multiple = 4;
  for (int i = 0; i < 300; ++i) {
    const Case c = limited_to(random_case(draws), can);
    ASSERT_EQ(obstacle(can, make_problem(c)), "") << describe(c);
  }
  for (const Law& law : all_laws()) {
    const Shape s = shaped_case(law, can, random_case(draws), CaseOrigin::drawn).shape;
    ASSERT_EQ(s.q_tokens % 4 + s.kv_tokens % 4, 0) << law.id;
  }
}

}  // namespace
}  // namespace ringlab::verify
