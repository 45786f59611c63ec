// Tomography, matched filters and the fingerprint, on subjects with known faults.
#include "property_tests/diagnosis/insight.h"

#include <gmock/gmock.h>

#include <cmath>
#include <utility>

#include "property_tests/diagnosis/fingerprint.h"
#include "property_tests/diagnosis/matched_filters.h"
#include "property_tests/diagnosis/model/model.h"
#include "property_tests/diagnosis/profiles/arithmetic.h"
#include "property_tests/diagnosis/telling_case.h"
#include "property_tests/diagnosis/tomography.h"
#include "property_tests/foreign_subject.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Trial small_trial() {
  Case c;
  c.shape = {1, 2, 1, 16, 16, 4, 3};
  c.mask = "causal";
  return make_trial(c);
}

TEST(Tomography, reads_the_exact_softmax_of_a_correct_subject) {
  const Tomography t = read_softmax(naive_subject(), small_trial());
  EXPECT_THAT(t.findings, IsEmpty());
  for_each_index(t.got.extents(), [&](auto b, auto h, auto i, auto j) {
    EXPECT_NEAR(t.got(b, h, i, j), t.exact(b, h, i, j), 1e-5);
  });
  const std::string picture = softmax_picture(t, 0, 0, 8);
  EXPECT_EQ(picture.substr(0, 9), "=       \n");
  EXPECT_EQ(picture.find_first_not_of("= \n"), std::string::npos);
}

TEST(Tomography, says_that_a_key_is_lost) {
  const Tomography t = read_softmax(naive_subject(Mistake::last_key_dropped), small_trial());
  EXPECT_NE(softmax_picture(t, 0, 0, 16).find('0'), std::string::npos);
  EXPECT_FALSE(t.findings.empty());
}

TEST(Tomography, says_that_a_rescale_was_missed) {
  const Tomography t = read_softmax(naive_subject(Mistake::acc_not_rescaled), small_trial());
  EXPECT_FALSE(t.findings.empty());
}

/// Computes what a model says, in bf16.
Subject modelled(const std::function<void(Model&)>& edit) {
  Subject subject = find_subject("ring");
  subject.can.dtypes = {DType::bf16};
  subject.run = [edit, profile = subject.profile](const AttentionInput& input,
                                                  const RunOptions& options) {
    Trial trial{input.problem, options, {}};
    const auto copy = [](const TensorView<const double>& view) {
      return mapped(Tensor<double>(view.extents),
                    [&](double, auto b, auto h, auto t, auto c) { return view(b, h, t, c); });
    };
    trial.data = {copy(input.q), copy(input.k), copy(input.v)};
    Model model = make_model(trial, profile(input.problem, options));
    edit(model);
    RunResult result;
    result.output = finish(model).output;
    for (double& x : result.output.out.values()) x = round_to(DType::bf16, x);
    return result;
  };
  return subject;
}

TEST(MatchedFilters, are_silent_about_what_is_only_rounded) {
  const Subject subject = modelled([](Model&) {});
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_THAT(filter_warnings(subject, seed), IsEmpty());
  }
}

TEST(MatchedFilters, name_the_step_whose_keys_count_too_much_within_every_bound) {
  const double factor = 1 + 0x1p-9;
  const Subject subject = modelled([&](Model& model) {
    for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
      if (model.hop(i, j) != 2) return;
      model.in_acc(b, h, i, j) *= factor;
      model.in_sum(b, h, i, j) *= factor;
    });
  });
  double worst = 0;
  std::string name;
  double beta = 0;
  for (const FilterResult& result : matched_filters(subject, DType::bf16, 1)) {
    if (std::abs(result.z) <= std::abs(worst)) continue;
    worst = result.z;
    name = result.filter;
    beta = result.beta;
  }
  EXPECT_EQ(name, "step 2 of the ring");
  EXPECT_GT(worst, kFilterLimit);
  EXPECT_NEAR(1 + beta, factor, 0x1p-11);
}

TEST(Fingerprint, says_which_declared_rounding_is_not_there) {
  Subject subject = find_subject("ring");
  subject.can.dtypes = {DType::f32};
  EXPECT_THAT(wider_than_needed(subject, 1), IsEmpty());
  subject = with_profile(subject, [](NumericsProfile& wide) { wide.u_probability = 0x1p-8; });
  EXPECT_THAT(wider_than_needed(subject, 1), Contains(HasSubstr("weights rounded to 2^-8")));
}

TEST(Insight, of_a_failed_verdict_names_the_mistake) {
  const Subject subject = naive_subject(Mistake::lse_in_base_two);
  VerifyOptions options;
  options.laws = {"equals_reference"};
  const Insight insight =
      look_into(subject, verify_subject(subject, options), options, Depth::everything);
  EXPECT_EQ(insight.diagnosis.sentence(), "this is: lse is the maximum plus log2 of the row sum");
  EXPECT_EQ(insight.of_law, "equals_reference");
  EXPECT_THAT(insight.warnings, IsEmpty());
}

/// What is said of an implementation of others under this profile.
std::string arithmetic_named(Subject subject, double u_accumulate,
                             const std::vector<std::string>& laws = {"equals_reference", "P26"}) {
  subject = with_profile(
      subject, [u_accumulate](NumericsProfile& declared) { declared.u_accumulate = u_accumulate; });
  subject.can.dtypes = {DType::f32};
  subject = foreign_subject(std::move(subject));
  return passes_if(subject, verify_subject(subject, {.laws = laws}), {}, verify_law);
}

/// What `equals_reference` finds, and what is named.
std::pair<SubjectVerdict, Insight> failure_of(const Subject& subject) {
  VerifyOptions options;
  options.laws = {"equals_reference"};
  SubjectVerdict verdict = verify_subject(subject, options);
  Insight insight = look_into(subject, verdict, options, Depth::failures);
  return {std::move(verdict), std::move(insight)};
}

TEST(TellingCase, is_explained_by_what_is_named_and_by_nothing_else) {
  int unclear = 0;  // smallest cases that more than one mistake explains
  for (const Mistake mistake : {Mistake::scale_forgotten, Mistake::scale_sign_flipped,
                                Mistake::lse_in_base_two, Mistake::lse_without_maximum}) {
    const Subject subject = naive_subject(mistake);
    auto [verdict, insight] = failure_of(subject);
    const Case smallest = verdict.laws.front().failure->shrunk;
    unclear += explained_alone(subject, smallest).size() > 1;
    keep_what_tells(subject, insight, verdict);
    const LawFailure& kept = *verdict.laws.front().failure;
    EXPECT_EQ(explained_alone(subject, kept.shrunk), insight.diagnosis.explains)
        << describe(kept.shrunk);
    EXPECT_LE(kept.shrunk.shape.kv_tokens, 6);
    const LawResult again = run_law(subject, find_law("equals_reference"), kept.shrunk);
    EXPECT_EQ(again.outcome, Outcome::broken);
    EXPECT_EQ(again.message, kept.message);
    EXPECT_TRUE(kept.token.ends_with(to_token(kept.shrunk)));
  }
  EXPECT_GE(unclear, 2);
}

TEST(TellingCase, is_the_smallest_where_that_tells_already_or_nothing_has_a_name) {
  for (const Mistake mistake : {Mistake::lse_in_f16, Mistake::odd_keys_favoured}) {
    const Subject subject = naive_subject(mistake);
    auto [verdict, insight] = failure_of(subject);
    const Case smallest = verdict.laws.front().failure->shrunk;
    ASSERT_LE(explained_alone(subject, smallest).size(), 1u) << describe(smallest);
    keep_what_tells(subject, insight, verdict);
    EXPECT_EQ(verdict.laws.front().failure->shrunk, smallest);
  }
}

TEST(Arithmetic, that_would_pass_is_named_where_too_much_was_promised) {
  EXPECT_EQ(
      arithmetic_named(naive_subject(), 0x1p-40),
      "it passes if f32 is multiplied in TF32: declare .u_product = 0x1p-10 and .u_accumulate "
      "= 0x1p-23 in ringlab_numerics, or Profile(u_product=2**-10, u_accumulate=2**-23) in "
      "Python");
  EXPECT_EQ(arithmetic_named(naive_subject(), 0x1p-24), "") << "nothing is broken";
  EXPECT_EQ(arithmetic_named(naive_subject(Mistake::scale_forgotten), 0x1p-24), "");
}

double without_subnormal(double x) { return std::abs(x) < 0x1p-126 ? 0 : x; }

/// naive_subject() on a processor that takes subnormal numbers of f32 for 0, as it reads and writes.
Subject flushing_subject() {
  Subject subject = naive_subject();
  subject.run = [run = subject.run](const AttentionInput& input, const RunOptions& options) {
    AttentionInput read = input;
    std::vector<Tensor<double>> copies;
    for (TensorView<const double>* view : {&read.q, &read.k, &read.v}) {
      Tensor<double> copy = dense_copy<double>(*view);
      for (double& x : copy.values()) x = without_subnormal(x);
      copies.push_back(std::move(copy));
      *view = std::as_const(copies.back()).view();
    }
    RunResult result = run(read, options);
    for (double& x : result.output.out.values()) x = without_subnormal(x);
    return result;
  };
  return subject;
}

TEST(Arithmetic, that_takes_subnormal_numbers_for_0_is_named) {
  EXPECT_EQ(arithmetic_named(flushing_subject(), 0x1p-24, {"equals_reference", "P80"}),
            "it passes if subnormal numbers are taken for 0: declare .u_query = 0x3p-24 and "
            ".product_underflow = 0x1p-123 in ringlab_numerics, or "
            "Profile(prescaled=True, product_underflow=2**-123) in Python");
}

TEST(Arithmetic, that_forgives_anything_is_not_named) {
  const Subject subject =
      with_results(naive_subject(), [](RunResult& result, const auto& input, const auto&) {
        const Shape& s = input.problem.shape;
        if (s.head_dim >= 64 && s.kv_tokens >= 64) {
          std::ranges::fill(result.output.out.values(), 0.0);
        }
      });
  EXPECT_EQ(arithmetic_named(subject, 0x1p-24, {"P37"}), "");
}

}  // namespace
}  // namespace ringlab::verify
