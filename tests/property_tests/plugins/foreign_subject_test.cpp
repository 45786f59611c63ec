// Subjects that can do less: what they are not asked, and what they are given instead.
#include "property_tests/foreign_subject.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "property_tests/generators/cases.h"
#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "tests/expect_laws.h"

namespace ringlab::verify {
namespace {

using ::testing::HasSubstr;

/// Stage 01 with fewer abilities; complains when it is asked for more.
Subject less_able(const Capabilities& can) {
  Subject raw = find_subject("01");
  raw.can = can;
  raw.run = [run = raw.run, can](const AttentionInput& input, const RunOptions& options) {
    EXPECT_EQ(obstacle(can, input.problem), "");
    RunResult result = run(input, options);
    if (!can.has(Ability::lse)) result.output.lse = {};
    return result;
  };
  return foreign_subject(std::move(raw));
}

Capabilities as_little_as_possible() {
  Capabilities can;
  can.dtypes = {DType::f32};
  can.drop({Ability::many_ranks, Ability::counts_traffic, Ability::bit_masks});
  can.drop({Ability::lse, Ability::grouped_heads, Ability::rectangular, Ability::other_v_dim});
  can.drop({Ability::no_tokens, Ability::empty_rows, Ability::any_scale, Ability::strided_inputs});
  can.masks = {.kinds = {}, .intersections = false};
  can.max_head_dim = 32;
  can.head_dim_multiple = 8;
  return can;
}

TEST(ForeignSubject, that_can_do_next_to_nothing_is_never_asked_for_more) {
  EXPECT_TRUE(
      expect_laws_kept(less_able(as_little_as_possible()), {.cases_per_law = 5}, 15).passed());
}

TEST(ForeignSubject, is_held_to_every_law_that_its_abilities_allow) {
  Capabilities can = find_subject("01").can;
  can.drop({Ability::lse});
  for (const LawVerdict& law : expect_laws_kept(less_able(can), {.cases_per_law = 5}, 40).laws) {
    const bool about_lse = law.id == "P26" || law.id == "P27";
    EXPECT_EQ(law.skipped == "gives no lse", about_lse) << law.id;
  }
}

TEST(ForeignSubject, cases_are_made_to_fit) {
  const Capabilities can = as_little_as_possible();
  Draws draws(3);
  int fitting = 0;
  for (int n = 0; n < 500; ++n) {
    const Case c = limited_to(random_case(draws), can);
    fitting += obstacle(can, make_problem(c)).empty();
  }
  EXPECT_EQ(fitting, 500);
}

TEST(ForeignSubject, each_ability_that_is_missing_has_its_obstacle) {
  const auto missing = [](auto take_away, Case c) {
    Capabilities can;
    take_away(can);
    return obstacle(can, make_problem(fitted(std::move(c))));
  };
  const auto without = [&](Ability ability, const Case& c) {
    return missing([&](auto& can) { can.drop({ability}); }, c);
  };
  const Case plain{.shape = {1, 2, 2, 4, 4, 8, 8}};
  Case c = plain;
  EXPECT_EQ(obstacle(Capabilities{}, make_problem(plain)), "");
  c.shape.kv_heads = 1;
  EXPECT_THAT(without(Ability::grouped_heads, c), HasSubstr("grouped"));
  c = plain;
  c.shape.kv_tokens = 5;
  EXPECT_THAT(without(Ability::rectangular, c), HasSubstr("as many"));
  c.shape.kv_tokens = 3;
  c.mask = "causal";
  EXPECT_THAT(without(Ability::empty_rows, c), HasSubstr("see no key"));
  EXPECT_THAT(missing([](auto& can) { can.masks.template of<CausalMask>() = false; }, c),
              HasSubstr("no causal"));
  c = plain;
  c.shape.v_dim = 7;
  EXPECT_THAT(without(Ability::other_v_dim, c), HasSubstr("as wide"));
  EXPECT_THAT(missing([](auto& can) { can.head_dim_multiple = 8; }, c), HasSubstr("dimensions"));
  EXPECT_THAT(missing([](auto& can) { can.max_head_dim = 7; }, plain), HasSubstr("dimensions"));
  c = plain;
  c.shape.q_tokens = 0;
  EXPECT_THAT(without(Ability::no_tokens, c), HasSubstr("empty"));
  c = plain;
  c.scale = ScaleKind::unit;
  EXPECT_THAT(without(Ability::any_scale, c), HasSubstr("scale"));
  c = plain;
  c.mask = "causal+window:2,0";
  EXPECT_THAT(missing([](auto& can) { can.masks.intersections = false; }, c),
              HasSubstr("intersection"));
  c.mask = "bits:1";
  EXPECT_THAT(without(Ability::bit_masks, c), HasSubstr("bits"));
}

TEST(ForeignSubject, each_modifier_that_is_missing_has_its_obstacle) {
  const auto without = [](ModifierKind missing, const CaseModifiers& modifiers) {
    Capabilities can;
    can.modifiers = kAllModifiers;
    can.modifiers.set(missing, false);
    return obstacle(can, make_problem({.shape = {1, 2, 2, 4, 4, 8, 8}, .modifiers = modifiers}));
  };
  const CaseModifiers softcap{.softcap = 3}, alibi{.alibi = true}, sinks{.sinks = true},
      dropout{.dropout_percent = 30};
  EXPECT_EQ(without(ModifierKind::softcap, softcap), "knows no soft-capping");
  EXPECT_EQ(without(ModifierKind::alibi, alibi), "knows no ALiBi");
  EXPECT_EQ(without(ModifierKind::sinks, sinks), "knows no sinks");
  EXPECT_EQ(without(ModifierKind::dropout, dropout), "knows no dropout");
  EXPECT_EQ(without(ModifierKind::dropout, softcap), "");
  EXPECT_EQ(obstacle(Capabilities{},
                     make_problem({.shape = {.q_tokens = 1, .kv_tokens = 1}, .modifiers = alibi})),
            "knows no score modifiers");
}

TEST(ForeignSubject, a_run_beyond_its_abilities_is_unsupported_and_the_case_discarded) {
  const Subject subject = less_able(as_little_as_possible());
  const Trial trial = make_trial({.shape = {1, 2, 1, 4, 4, 8, 8}});
  EXPECT_THROW(run_trial(subject, trial), Unsupported);
  const LawResult result =
      run_law(subject, find_law("equals_reference"), {.shape = {1, 2, 1, 4, 4, 8, 8}});
  EXPECT_EQ(result.outcome, Outcome::discarded);
  EXPECT_EQ(result.message, "it takes no grouped heads");
}

TEST(ForeignSubject, rows_that_see_nan_have_no_lse_and_the_others_the_exact_one) {
  Capabilities can = find_subject("01").can;
  can.drop({Ability::lse});
  Trial trial = make_trial({.shape = {1, 1, 1, 3, 3, 2, 2}, .mask = "causal"});
  trial.data.k(0, 0, 1, 0) = std::numeric_limits<double>::quiet_NaN();
  const AttentionOutput got = attend(less_able(can), trial);
  EXPECT_TRUE(std::isfinite(got.lse(0, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(got.lse(0, 0, 1, 0)));
  EXPECT_TRUE(std::isnan(got.lse(0, 0, 2, 0)));
}

TEST(PlainerMask, of_a_matrix_is_found_where_there_is_one) {
  const auto plainer = [](const std::string& text, std::int64_t queries, std::int64_t keys) {
    const Mask mask = parse_mask(text).bind(queries, keys);
    Problem problem{.shape = {1, 1, 1, queries, keys, 1, 1}, .mask = mask};
    const Pairs pairs = visible_pairs(problem);
    use_pairs(problem, pairs);
    const auto found = plainer_mask(problem.mask);
    return found ? found->text() : "none";
  };
  EXPECT_EQ(plainer("full", 3, 4), "full");
  EXPECT_EQ(plainer("causal", 4, 4), "causal");
  EXPECT_EQ(plainer("causal", 2, 5), "causal");
  EXPECT_EQ(plainer("window:1,0", 6, 6), "window:1,0");
  EXPECT_EQ(plainer("documents:2,3", 5, 5), "none");
}

}  // namespace
}  // namespace ringlab::verify
