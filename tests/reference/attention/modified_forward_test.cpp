// Modified scores: answers worked by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "reference/attention/exact.h"
#include "tests/reference/attention/random_modifiers.h"
#include "tests/special_doubles.h"

namespace ringlab {
namespace {

struct OneHead {
  Problem problem;
  AttentionTensors tensors;
  ExactForward exact() const { return exact_forward(tensors.input(problem)); }
};

Tensor<double> one_column(const std::vector<double>& values) {
  Tensor<double> tensor({1, 1, static_cast<std::int64_t>(values.size()), 1});
  tensor.values() = values;
  return tensor;
}

OneHead one_head(const std::vector<double>& q, const std::vector<double>& k,
                 const std::vector<double>& v, const Mask& mask = Mask()) {
  OneHead head;
  const auto queries = static_cast<std::int64_t>(q.size());
  const auto keys = static_cast<std::int64_t>(k.size());
  head.problem.shape = {1, 1, 1, queries, keys, 1, 1};
  head.problem.dtype = DType::f64;
  head.problem.mask = mask.bind(queries, keys);
  head.tensors = {one_column(q), one_column(k), one_column(v)};
  return head;
}

TEST(ModifiedForward, caps_scores_softly) {
  // tanh(ln 3 / 2) = 1/2: with a cap of 4 the scores are 2 and -2, e^2 : e^-2.
  OneHead head = one_head({1}, {2 * std::log(3.0), -2 * std::log(3.0)}, {1, 0});
  head.problem.modifiers.softcap = 4;
  EXPECT_NEAR(head.exact().out(0, 0, 0, 0), 1 / (1 + std::exp(-4.0)), 1e-15);
  EXPECT_NEAR(head.exact().lse(0, 0, 0, 0), std::log(std::exp(2.0) + std::exp(-2.0)), 1e-15);
}

TEST(ModifiedForward, cannot_tell_scores_far_above_the_cap_apart) {
  OneHead head = one_head({1}, {1e6, 2e6, 1e300}, {3, 6, 9});
  head.problem.modifiers.softcap = 10;
  EXPECT_NEAR(head.exact().out(0, 0, 0, 0), 6, 1e-14);
}

TEST(ModifiedForward, subtracts_the_slope_times_the_distance_to_where_the_query_stands) {
  // Two queries, three keys: query 0 stands at key 1, so distances are 1, 0, 1; then 2, 1, 0.
  const double half = std::log(2.0);
  OneHead head = one_head({0, 0}, {0, 0, 0}, {4, 8, 16});
  head.problem.modifiers.alibi_slopes = {half};
  EXPECT_NEAR(head.exact().out(0, 0, 0, 0), (4 / 2.0 + 8 + 16 / 2.0) / 2, 1e-14);
  EXPECT_NEAR(head.exact().out(0, 0, 1, 0), (4 / 4.0 + 8 / 2.0 + 16) / 1.75, 1e-14);
}

TEST(ModifiedForward, caps_before_it_subtracts) {
  OneHead head = one_head({1}, {1e9, 1e9}, {1, 0});
  head.problem.modifiers.softcap = 1;
  head.problem.modifiers.alibi_slopes = {std::log(3.0)};  // the first key is one away
  EXPECT_NEAR(head.exact().out(0, 0, 0, 0), 0.25, 1e-15);
}

TEST(ModifiedForward, gives_a_sink_its_share_of_every_row) {
  OneHead head = one_head({0}, {0, 0, 0}, {1, 2, 3});
  head.problem.modifiers.sinks = {0};
  EXPECT_NEAR(head.exact().out(0, 0, 0, 0), 6 / 4.0, 1e-15);
  EXPECT_NEAR(head.exact().lse(0, 0, 0, 0), std::log(4.0), 1e-15);
  head.problem.modifiers.sinks = {800};  // far above all scores: nothing is left for the keys
  EXPECT_LT(head.exact().out(0, 0, 0, 0), 1e-300);
  EXPECT_EQ(head.exact().lse(0, 0, 0, 0), 800);
  head.problem.modifiers.sinks = {-800};
  EXPECT_EQ(head.exact().out(0, 0, 0, 0), 2);
}

TEST(ModifiedForward, of_a_row_that_sees_no_key_is_zero_with_the_lse_of_the_sink) {
  // Three queries, one key: queries 0 and 1 stand before it.
  OneHead head = one_head({1, 1, 1}, {1}, {5}, Mask({CausalMask{}}));
  EXPECT_EQ(head.exact().lse(0, 0, 0, 0), -kInfinity);
  head.problem.modifiers.sinks = {-2.5};
  for (const std::int64_t row : {0, 1}) {
    EXPECT_EQ(head.exact().lse(0, 0, row, 0), -2.5);
    EXPECT_EQ(head.exact().out(0, 0, row, 0), 0);
    EXPECT_EQ(head.exact().out_error(0, 0, row, 0), 0);
  }
  const NumericsProfile profile = carried_profile(DType::f32, 1);
  const ForwardTolerance allowed =
      forward_tolerance(head.tensors.input(head.problem), head.exact(), profile);
  EXPECT_EQ(allowed.out(0, 0, 0, 0), 0);
  EXPECT_GT(allowed.lse(0, 0, 0, 0), 0);
  EXPECT_LT(allowed.lse(0, 0, 0, 0), 1e-4);
  EXPECT_GT(allowed.out(0, 0, 2, 0), 0);
}

TEST(ModifiedForward, drops_from_the_values_and_not_from_the_row_sum) {
  OneHead head = one_head({0}, std::vector<double>(64, 0.0), std::vector<double>(64, 1.0));
  head.problem.modifiers.dropout = 0.5;
  head.problem.modifiers.dropout_seed = 5;
  const ExactForward exact = head.exact();
  EXPECT_NEAR(exact.lse(0, 0, 0, 0), std::log(64.0), 1e-14);
  const double kept = exact.out(0, 0, 0, 0) * 32;  // each kept key adds 2 / 64
  EXPECT_EQ(kept, std::round(kept));
  EXPECT_NEAR(kept, 32, 20);  // five standard deviations
  head.problem.modifiers.dropout_seed = 6;
  OneHead other = head;
  other.tensors.v.values().assign(64, 0.0);
  other.tensors.v.values()[7] = 64;  // one key: 2 or 0
  const double one = other.exact().out(0, 0, 0, 0);
  EXPECT_TRUE(one == 0 || one == 2) << one;
}

}  // namespace
}  // namespace ringlab
