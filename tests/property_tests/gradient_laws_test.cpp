// The laws about gradients: the correct stage keeps them, and each of these mistakes breaks some.
#include <gtest/gtest.h>

#include <functional>

#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/groups.h"
#include "property_tests/verify.h"
#include "tests/property_tests/naive_subject.h"

namespace ringlab::verify {
namespace {

using Tamper = std::function<void(AttentionGradients&, const AttentionInput&)>;

Subject tampered(const Tamper& tamper) {
  return with_results(find_subject("backward"),
                      [tamper](RunResult& result, const auto& input, const auto&) {
                        if (result.gradients) tamper(*result.gradients, input);
                      });
}

bool breaks(const Subject& subject, const std::string& law) {
  return verify_law(subject, find_law(law), {.cases_per_law = 60, .shrink = false})
      .failure.has_value();
}

void expect_broken(const Tamper& tamper, const std::vector<std::string>& laws) {
  for (const std::string& law : laws) EXPECT_TRUE(breaks(tampered(tamper), law)) << law;
}

TEST(GradientLaws, hold_for_the_stage_backward) {
  for (const Law& law : backward_laws()) {
    const LawVerdict verdict =
        verify_law(find_subject("backward"), law, {.seed = 5, .cases_per_law = 40});
    EXPECT_FALSE(verdict.failure) << law.id << ": " << verdict.failure->message << "\n"
                                  << verdict.failure->token;
    EXPECT_GE(verdict.cases, 30) << law.id << " discarded " << verdict.discarded;
  }
}

TEST(GradientLaws, do_not_apply_without_gradients) {
  for (const Law& law : backward_laws()) {
    EXPECT_NE(law.unmet(find_subject("ring")), "") << law.id;
  }
}

TEST(GradientLaws, see_outputs_that_are_wrong_only_beside_gradients) {
  for (const bool in_lse : {false, true}) {
    const Subject subject = with_results(
        find_subject("backward"), [in_lse](RunResult& result, const auto& input, const auto&) {
          Tensor<double>& output = in_lse ? result.output.lse : result.output.out;
          if (input.dout) output = scaled(output, 1.5);
        });
    EXPECT_TRUE(breaks(subject, "gradients_equal_reference")) << in_lse;
    EXPECT_FALSE(breaks(subject, "equals_reference")) << in_lse;
  }
}

TEST(GradientLaws, see_dk_that_is_lost) {
  expect_broken(
      [](AttentionGradients& g, const AttentionInput&) {
        if (g.dk.size() > 0) g.dk.values()[0] = 0;
      },
      {"gradients_equal_reference", "P41", "P42", "P44"});
}

TEST(GradientLaws, see_one_percent_too_much_dv) {
  expect_broken([](AttentionGradients& g, const AttentionInput&) { g.dv = scaled(g.dv, 1.01); },
                {"gradients_equal_reference", "P40", "P43", "P44", "P53"});
}

TEST(GradientLaws, see_dq_without_the_scale) {
  expect_broken([](AttentionGradients& g,
                   const AttentionInput& input) { g.dq = scaled(g.dq, 1 / input.problem.scale); },
                {"gradients_equal_reference", "P42", "P44", "P50"});
}

TEST(GradientLaws, see_an_offset_in_every_gradient) {
  expect_broken(
      [](AttentionGradients& g, const AttentionInput&) {
        for (double& x : g.dq.values()) x += 0.5;
        for (double& x : g.dk.values()) x += 0.5;
      },
      {"P41", "P45", "P46", "P47", "P51", "P52", "P54"});
}

TEST(GradientLaws, see_gradients_that_look_at_hidden_tokens) {
  expect_broken(
      [](AttentionGradients& g, const AttentionInput& input) {
        if (g.dq.size() == 0 || g.dk.size() == 0) return;
        const Shape& s = input.problem.shape;
        g.dq(0, 0, 0, 0) += 1e-3 * input.k(0, 0, s.kv_tokens - 1, 0);
        g.dk(0, 0, s.kv_tokens - 1, 0) += 1e-3 * input.q(0, 0, 0, 0);
      },
      {"P48", "P49", "P56"});
}

TEST(GradientLaws, see_gradients_of_keys_in_the_wrong_places) {
  expect_broken(
      [](AttentionGradients& g, const AttentionInput&) {
        for (Tensor<double>* x : {&g.dk, &g.dv}) {
          Indices order = in_order(x->extents().tokens);
          if (order.size() > 1) std::swap(order.front(), order.back());
          *x = pick_tokens(*x, order);
        }
      },
      {"gradients_equal_reference", "P43", "P44", "P55"});
}

TEST(GradientLaws, see_what_depends_on_the_number_of_ranks) {
  const Subject subject = with_results(
      find_subject("backward"), [](RunResult& result, const auto&, const RunOptions& options) {
        if (!result.gradients) return;
        const double factor =
            1 + 0.01 * options.ranks + 1e-3 * (options.transport == TransportKind::simulated);
        result.gradients->dv = scaled(result.gradients->dv, factor);
      });
  EXPECT_TRUE(breaks(subject, "P58-gradients"));
  EXPECT_TRUE(breaks(subject, "P65-gradients"));
}

TEST(GradientLaws, see_a_subject_that_gives_none) {
  const Subject subject =
      with_results(find_subject("backward"),
                   [](RunResult& result, const auto&, const auto&) { result.gradients.reset(); });
  EXPECT_TRUE(breaks(subject, "gradients_equal_reference"));
}

}  // namespace
}  // namespace ringlab::verify
