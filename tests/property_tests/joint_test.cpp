// Classes of calls, covering designs, planned cases and the coverage of pairs.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "property_tests/coverage.h"
#include "property_tests/joint/covering.h"
#include "property_tests/joint/plan.h"
#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Capabilities everything() {
  Capabilities can = naive_subject().can;
  can.dtypes = {DType::f32, DType::bf16, DType::f16};
  can.drop({Ability::many_ranks});
  can.add({Ability::backward});
  can.modifiers = kAllModifiers;
  return can;
}

std::string words_of(const Classes& classes, Factor factor) {
  return class_words(factor, classes[factor]);
}

TEST(Factors, of_a_call_have_the_class_that_its_sizes_mask_and_strides_are_in) {
  Case c;
  c.shape = {2, 16, 2, 3, 600, 128, 64};
  c.dtype = DType::bf16;
  c.mask = "causal+window:7,0";
  c.modifiers.softcap = 8;
  const Trial trial = make_trial(c);
  AttentionInput input = trial.input();
  const Classes dense = classes_of_call(everything(), input, trial.options);
  EXPECT_EQ(words_of(dense, Factor::dtype), "bf16");
  EXPECT_EQ(words_of(dense, Factor::head_dim), "128");
  EXPECT_EQ(words_of(dense, Factor::v_dim), "another");
  EXPECT_EQ(words_of(dense, Factor::group), "8 …");
  EXPECT_EQ(words_of(dense, Factor::batch), "2 … 8");
  EXPECT_EQ(words_of(dense, Factor::queries), "2 … 15");
  EXPECT_EQ(words_of(dense, Factor::keys), "512 … 2047");
  EXPECT_EQ(words_of(dense, Factor::mask), "causal+window");
  EXPECT_EQ(words_of(dense, Factor::modifiers), "softcap");
  EXPECT_EQ(words_of(dense, Factor::scale), "1/sqrt(head_dim)");
  EXPECT_EQ(words_of(dense, Factor::strides), "dense");
  input.k.strides.token = 0;
  EXPECT_EQ(words_of(classes_of_call(everything(), input, trial.options), Factor::strides),
            "of rows apart");
  input.v.strides.channel = -1;
  EXPECT_EQ(words_of(classes_of_call(everything(), input, trial.options), Factor::strides),
            "of channels apart");
}

TEST(Factors, that_a_subject_does_not_claim_have_no_classes_but_the_plainest) {
  Capabilities can = everything();
  can.max_head_dim = 100;
  can.head_dim_multiple = 32;
  can.drop({Ability::grouped_heads, Ability::rectangular, Ability::any_scale});
  can.modifiers = {};
  can.masks.of<WindowMask>() = false;
  EXPECT_EQ(claimed_classes(Factor::group, can).size(), 1U);
  EXPECT_THAT(claimed_classes(Factor::queries, can), IsEmpty()) << "as many as keys";
  EXPECT_EQ(claimed_classes(Factor::scale, can).size(), 1U);
  EXPECT_EQ(claimed_classes(Factor::modifiers, can).size(), 1U);
  std::vector<std::string> widths, masks;
  for (const auto number : claimed_classes(Factor::head_dim, can))
    widths.push_back(class_words(Factor::head_dim, number));
  EXPECT_EQ(widths, (std::vector<std::string>{"32 … 63", "64", "65 … 127"}));
  for (const auto number : claimed_classes(Factor::mask, can))
    masks.push_back(class_words(Factor::mask, number));
  EXPECT_THAT(masks, Contains("causal+documents"));
  EXPECT_THAT(masks, Not(Contains("causal+window")));
}

TEST(CoveringDesign, brings_all_pairs_together_in_few_rows) {
  const FactorClasses classes = claimed_classes(everything());
  Draws draws(5);
  CoveringDesign design(classes, draws);
  Meetings met;
  std::size_t rows = 0;
  while (const auto row = design.next([](const Classes&) { return true; })) {
    met.add(*row);
    ++rows;
  }
  for (const ClassPair& pair : claimed_pairs(everything())) {
    EXPECT_TRUE(met.has(pair)) << pair.words();
  }
  EXPECT_LE(rows, 2 * classes[static_cast<std::size_t>(Factor::mask)].size() *
                      classes[static_cast<std::size_t>(Factor::head_dim)].size());
}

TEST(CoveringDesign, leaves_out_what_does_not_fit_and_tries_it_again_when_more_fits) {
  const FactorClasses classes = claimed_classes(everything());
  Draws draws(5);
  CoveringDesign design(classes, draws);
  const auto is_small = [](const Classes& row) { return row[Factor::keys] < 4; };
  while (const auto row = design.next(is_small)) {
    EXPECT_LT((*row)[Factor::keys], 4);
    EXPECT_NE((*row)[Factor::dtype], kNoClass) << "each class is chosen";
  }
  const auto more = design.next([](const Classes&) { return true; });
  ASSERT_TRUE(more);
  EXPECT_GE((*more)[Factor::keys], 4);
}

TEST(PlannedCases, are_valid_and_the_same_for_equal_seeds_and_rounds_only) {
  const auto plan = planned_cases(everything(), kPlannedForward, 3, 0);
  EXPECT_EQ(plan, planned_cases(everything(), kPlannedForward, 3, 0));
  EXPECT_NE(plan, planned_cases(everything(), kPlannedForward, 4, 0));
  EXPECT_NE(plan, planned_cases(everything(), kPlannedForward, 3, 1));
  for (const Case& c : plan) EXPECT_EQ(from_token(to_token(c)), c);
  for (const Case& c : far_cases(everything(), false, 3, 2)) EXPECT_EQ(from_token(to_token(c)), c);
}

/// The classes of a planned case once the subject has limited it.
Classes classes_of(const Capabilities& can, const Case& drawn) {
  const Case c = shaped_case(find_law(kAsUsedLaw), can, drawn, CaseOrigin::planned);
  const Problem problem = make_problem(c);
  const Extents q = c.shape.q(), k = c.shape.k(), v = c.shape.v();
  return classes_of_call(can,
                         {problem,
                          {nullptr, q, dense_strides(q)},
                          {nullptr, k, dense_strides(k)},
                          {nullptr, v, dense_strides(v)}},
                         make_options(c));
}

std::int64_t claimed_triples(const FactorClasses& claimed) {
  std::int64_t singles = 0, pairs = 0, triples = 0;
  for (const auto& classes : claimed) {
    triples += pairs * std::ssize(classes);
    pairs += singles * std::ssize(classes);
    singles += std::ssize(classes);
  }
  return triples;
}

using Triple = std::array<std::pair<Factor, std::int8_t>, 3>;
void add_triples(const Classes& call, std::set<Triple>& met) {
  for (const Factor a : kAllFactors) {
    for (const Factor b : kAllFactors) {
      for (const Factor c : kAllFactors) {
        if (a < b && b < c) met.insert({{{a, call[a]}, {b, call[b]}, {c, call[c]}}});
      }
    }
  }
}

TEST(PlannedCases, of_later_rounds_bring_other_triples_together) {
  Capabilities can;
  can.drop({Ability::many_ranks, Ability::counts_traffic, Ability::other_v_dim});
  can.dtypes = {DType::f32, DType::bf16};
  can.max_head_dim = 16;
  const double claimed = static_cast<double>(claimed_triples(claimed_classes(can)));
  std::set<Triple> met;
  const auto share_with_rounds = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t round = first; round <= last; ++round) {
      for (const Case& c : planned_cases(can, kPlannedForward, 5, round)) {
        add_triples(classes_of(can, c), met);
      }
    }
    return static_cast<double>(met.size()) / claimed;
  };
  const double once = share_with_rounds(0, 0);
  const double in_eight = share_with_rounds(1, 7);
  std::printf("  triples of claims that met: %.0f %% in one plan, %.0f %% in eight\n", 100 * once,
              100 * in_eight);
  EXPECT_GT(in_eight, once + 0.15) << "others do not fit, or have one memory order only";
}

/// The classes that the planned cases have once the subject has limited them.
Meetings planned_meetings(const Capabilities& can) {
  Meetings planned;
  for (const Case& c : planned_cases(can, kPlannedForward, 1, 0)) planned.add(classes_of(can, c));
  return planned;
}

TEST(PlannedCases, have_each_product_of_sizes_of_models_in_each_dtype) {
  EXPECT_EQ(claimed_cells(everything()).size(), 81U) << "three of each";
  for (const std::int64_t unit : {1, 8, 16, 24, 64}) {
    Capabilities can = everything();
    can.head_dim_multiple = unit;
    can.max_head_dim = 256;
    const Meetings planned = planned_meetings(can);
    for (const Meetings::Cell& cell : claimed_cells(can)) {
      EXPECT_GT(planned.calls(cell), 0) << cell_words(cell) << ", multiples of " << unit;
    }
    int open = 0;
    for (const ClassPair& pair : claimed_pairs(can)) {
      const bool is_of_strides = pair.first == Factor::strides || pair.second == Factor::strides;
      open += !is_of_strides && !planned.has(pair);
    }
    EXPECT_LE(open, 24) << "multiples of " << unit;
  }
}

TEST(PlannedCases, of_more_heads_than_memory_holds_have_no_token) {
  const std::string token =
      "b1048576.h1048576.g1.q0.k0.d1.v1.r1.f32.unit.contiguous.next.normal.threads.buffered.n0.x4."
      "y4."
      "ring.c2.full.s1";
  EXPECT_ANY_THROW(from_token(token));
}

TEST(PlannedCases, are_few_for_a_subject_that_compiles_for_each_shape) {
  Capabilities can = everything();
  can.add({Ability::few_shapes});
  EXPECT_LE(planned_cases(can, kPlannedForward, 1, 0).size(), 4U);
  EXPECT_THAT(far_cases(can, false, 1, 0), IsEmpty());
}

TEST(PlannedCases, are_tried_in_part_where_fewer_cases_are_wanted_and_all_over_the_rounds) {
  const Subject subject = naive_subject();
  const auto tried = [&](const VerifyOptions& options) {
    const LawVerdict verdict = verify_law(subject, find_law("far_sizes"), options);
    return verdict.cases + verdict.discarded;
  };
  const int all = tried({});
  int sum = 0;
  for (std::uint64_t round = 0; round < 4; ++round) {
    sum += tried({.round = round, .cases_per_law = 10});
  }
  EXPECT_NEAR(sum, all, 12) << "with other values where a case tells nothing";
}

TEST(PlannedCases, find_what_shows_only_where_sizes_and_types_of_models_meet) {
  struct OfOneLaw {
    Mistake mistake;
    const char* planned;
  };
  for (const auto& [mistake, planned] : {OfOneLaw{Mistake::mean_in_wide_groups, "as_used"},
                                         {Mistake::last_of_thousands_dropped, "as_used"},
                                         {Mistake::document_borders_in_15_bits, "far_sizes"}}) {
    EXPECT_TRUE(finds(planned, mistake)) << planned;
    for (const char* drawn :
         {"equals_reference", "many_keys", "whole_heads", "many_tiles", "far_positions"}) {
      EXPECT_FALSE(finds(drawn, mistake)) << drawn;
    }
  }
  EXPECT_TRUE(finds("as_used", Mistake::window_lost_in_last_document));
  EXPECT_TRUE(finds("as_used", Mistake::products_saturate));
}

TEST(Meetings, that_no_call_had_are_named_by_the_coverage) {
  const Subject subject = naive_subject();
  SubjectVerdict verdict{.subject = subject.name, .laws = {}};
  verdict.laws.push_back(verify_law(subject, find_law("equals_reference"), {}));
  const Coverage small = coverage_of(subject, verdict, {});
  EXPECT_FALSE(small.has_whole_plan);
  EXPECT_THAT(small.pairs_not_met, Contains("dtype f32 × keys 8192 …"));
  verdict.laws.push_back(verify_law(subject, find_law(kAsUsedLaw), {}));
  const Coverage planned = coverage_of(subject, verdict, {});
  EXPECT_TRUE(planned.has_whole_plan);
  EXPECT_EQ(planned.pairs_claimed.size(), claimed_pairs(subject.can).size());
  EXPECT_EQ(known_pair("mask causal x dtype f32"), "dtype f32 × mask causal");
  EXPECT_EQ(known_pair("gradients: dtype f32 × keys 8192 …"), "gradients: dtype f32 × keys 8192 …");
  EXPECT_EQ(known_pair("dtype f32 × dtype f16"), "");
  EXPECT_LE(planned.pairs_not_met.size(), 8U) << ::testing::PrintToString(planned.pairs_not_met);
  for (const SizesAsUsed& one : planned.as_used) EXPECT_GT(one.calls, 0) << cell_words(one.cell);
}

TEST(SizesAsUsed, are_open_and_not_missing_where_bounds_are_as_wide_as_the_answer) {
  Subject coarse = naive_subject();
  coarse.profile = [](const Problem& problem, const RunOptions&) {
    NumericsProfile profile = carried_profile(problem.dtype, 1);
    profile.u_accumulate = 0x1p-10;
    return profile;
  };
  coarse.can.dtypes = {DType::f32};
  coarse.can.max_head_dim = 64;
  SubjectVerdict verdict{.subject = coarse.name, .laws = {}};
  verdict.laws.push_back(verify_law(coarse, find_law(kAsUsedLaw), {}));
  Coverage coverage = coverage_of(coarse, verdict, {});
  ASSERT_FALSE(coverage.open_sizes().empty());
  EXPECT_THAT(coverage.open_sizes(), Each(HasSubstr("keys")));
  EXPECT_LT(coverage.open_sizes().size(), coverage.as_used.size());
  coverage.is_judged = true;
  coverage.classes.clear();
  EXPECT_THAT(coverage.missing(), IsEmpty());
  for (SizesAsUsed& one : coverage.as_used) one.open = 0;
  EXPECT_THAT(coverage.missing(), Not(IsEmpty())) << "nobody was asked";
}

}  // namespace
}  // namespace ringlab::verify
