// The forward oracle: examples by hand, what it ignores, what it refuses, and its second
// derivation.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "tests/reference/attention/random_case.h"
#include "tests/special_doubles.h"

namespace ringlab {
namespace {

Problem one_head(std::int64_t q_tokens, std::int64_t kv_tokens, const Mask& mask = Mask()) {
  Problem problem;
  problem.shape = {1, 1, 1, q_tokens, kv_tokens, 1, 1};
  problem.dtype = DType::f64;
  problem.mask = mask.bind(q_tokens, kv_tokens);
  return problem;
}

Tensor<double> column(const std::vector<double>& values) {
  Tensor<double> tensor({1, 1, static_cast<std::int64_t>(values.size()), 1});
  tensor.values() = values;
  return tensor;
}

TEST(ExactForward, agrees_with_a_softmax_worked_by_hand) {
  // Scores ln 1, ln 2, ln 5: weights 1/8, 2/8, 5/8, so out = (8·1 + 4·2 + 1.6·5) / 8 = 3.
  const AttentionTensors tensors{column({1.0}), column({0.0, std::log(2.0), std::log(5.0)}),
                                 column({8.0, 4.0, 1.6})};
  const Problem problem = one_head(1, 3);
  const ExactForward exact = exact_forward(tensors.input(problem));
  EXPECT_NEAR(exact.out(0, 0, 0, 0), 3.0, 1e-15);
  EXPECT_NEAR(exact.lse(0, 0, 0, 0), std::log(8.0), 1e-15);
}

TEST(ExactForward, aligns_causal_queries_with_the_last_keys) {
  // Two queries, four keys: query 0 stands at key 2 and sees keys 0..2, query 1 sees all.
  const AttentionTensors tensors{column({0, 0}), column({0, 0, 0, 0}), column({1, 2, 6, 7})};
  const Problem problem = one_head(2, 4, Mask({CausalMask{}}));
  const ExactForward exact = exact_forward(tensors.input(problem));
  EXPECT_EQ(exact.out(0, 0, 0, 0), 3.0);
  EXPECT_EQ(exact.out(0, 0, 1, 0), 4.0);
}

TEST(ExactForward, reads_the_kv_head_of_the_query_group) {
  Problem problem = one_head(1, 1);
  problem.shape.q_heads = 6;
  problem.shape.kv_heads = 2;
  AttentionTensors tensors{Tensor<double>(problem.shape.q(), 1.0),
                           Tensor<double>(problem.shape.k(), 1.0),
                           Tensor<double>(problem.shape.v())};
  tensors.v(0, 0, 0, 0) = 10;
  tensors.v(0, 1, 0, 0) = 20;
  const ExactForward exact = exact_forward(tensors.input(problem));
  for (std::int64_t h = 0; h < 6; ++h) EXPECT_EQ(exact.out(0, h, 0, 0), h < 3 ? 10 : 20);
}

TEST(ExactForward, gives_zero_and_minus_infinity_with_no_error_on_a_row_that_sees_nothing) {
  // Four queries, two keys: queries 0 and 1 stand before the first key.
  const AttentionTensors tensors{column({1, 2, 3, 4}), column({1, 2}), column({5, 6})};
  const Problem problem = one_head(4, 2, Mask({CausalMask{}}));
  const ExactForward exact = exact_forward(tensors.input(problem));
  for (std::int64_t i : {0, 1}) {
    EXPECT_EQ(exact.out(0, 0, i, 0), 0);
    EXPECT_EQ(exact.lse(0, 0, i, 0), -kInfinity);
    EXPECT_EQ(exact.out_error(0, 0, i, 0), 0);
    EXPECT_EQ(exact.lse_error(0, 0, i, 0), 0);
  }
  const ForwardTolerance tolerance =
      forward_tolerance(tensors.input(problem), exact, carried_profile(DType::f32, 1));
  EXPECT_EQ(tolerance.out(0, 0, 0, 0), 0);
  EXPECT_EQ(tolerance.lse(0, 0, 0, 0), 0);
  EXPECT_GT(tolerance.out(0, 0, 2, 0), 0);
}

TEST(ExactForward, never_reads_what_the_mask_hides) {
  const AttentionTensors clean{column({1, 2, 3}), column({1, -1, 2}), column({3, 4, 5})};
  AttentionTensors dirty = clean;
  dirty.k(0, 0, 2, 0) = kNaN;
  dirty.v(0, 0, 2, 0) = -kInfinity;
  const std::vector<std::uint8_t> bits = {1, 1, 0, 1, 1, 0, 0, 1, 0};
  const Problem problem = one_head(3, 3, Mask({BitMask{3, 3, bits, "written here"}}));
  const ExactForward expected = exact_forward(clean.input(problem));
  const ExactForward got = exact_forward(dirty.input(problem));
  EXPECT_EQ(got.out.values(), expected.out.values());
  EXPECT_EQ(got.lse.values(), expected.lse.values());
  EXPECT_EQ(got.out_error.values(), expected.out_error.values());
}

TEST(ExactForward, refuses_a_visible_nan_and_an_overflowing_score) {
  const Problem problem = one_head(1, 2);
  for (const double bad : {kNaN, kInfinity, 1e300}) {
    const AttentionTensors tensors{column({1e300}), column({1e-300, bad}), column({1, 2})};
    EXPECT_THROW(exact_forward(tensors.input(problem)), Error) << bad;
  }
  const AttentionTensors tensors{column({1}), column({1, 2}), column({1, kNaN})};
  EXPECT_THROW(exact_forward(tensors.input(problem), {.threads = 2}), Error);
}

TEST(ExactForward, refuses_views_and_rows_that_do_not_fit_the_problem) {
  const Problem problem = one_head(2, 2);
  const AttentionTensors tensors{column({1, 2}), column({1, 2, 3}), column({1, 2})};
  EXPECT_THROW(exact_forward(tensors.input(problem)), Error);
  const AttentionTensors good{column({1, 2}), column({1, 2}), column({1, 2})};
  using Rows = std::vector<std::int64_t>;
  for (const Rows& rows : {Rows{2}, Rows{-1}, Rows{1, 0}, Rows{1, 1}}) {
    EXPECT_THROW(exact_forward(good.input(problem), {.rows = rows}), Error);
  }
}

TEST(ExactForward, tells_its_progress_row_by_row_and_ends_where_that_throws) {
  const Problem problem = one_head(6, 4);
  const AttentionTensors tensors{column({1, 2, 3, 4, 5, 6}), column({0, 1, 2, 3}),
                                 column({8, 4, 2, 1})};
  const AttentionInput input = tensors.input(problem);
  const Tensor<double> dout(problem.shape.out(), 1.0);
  for (const int threads : {1, 3}) {
    std::int64_t told = 0;
    const RowProgress count = [&](std::int64_t done, std::int64_t rows) {
      EXPECT_EQ(done, ++told);
      EXPECT_EQ(rows, 6);
    };
    exact_forward(input, {.threads = threads, .progress = count});
    EXPECT_EQ(told, 6);
    told = 0;
    exact_backward(input, dout.view(), threads, count);
    EXPECT_EQ(told, 6);
    const RowProgress stop = [](std::int64_t, std::int64_t) { throw std::runtime_error("enough"); };
    EXPECT_THROW(exact_forward(input, {.threads = threads, .progress = stop}), std::runtime_error);
    EXPECT_THROW(exact_backward(input, dout.view(), threads, stop), std::runtime_error);
  }
}

TEST(ExactForward, gives_sampled_rows_the_same_bits_as_all_rows_on_any_number_of_threads) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.tokens = 20});
    const Shape& shape = c.problem.shape;
    const ExactForward all = exact_forward(c.input());
    ExactOptions options{.threads = static_cast<int>(seed % 4)};
    for (std::int64_t i = static_cast<std::int64_t>(seed % 3); i < shape.q_tokens; i += 3) {
      options.rows.push_back(i);
    }
    if (options.rows.empty()) continue;
    const ExactForward some = exact_forward(c.input(), options);
    const NumericsProfile profile = carried_profile(DType::f32, 3);
    const ForwardTolerance wide = forward_tolerance(c.input(), all, profile);
    const ForwardTolerance narrow = forward_tolerance(c.input(), some, profile, options);
    for_each_index(some.out.extents(),
                   [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t channel) {
                     const std::int64_t row = options.rows[static_cast<std::size_t>(t)];
                     EXPECT_EQ(some.out(b, h, t, channel), all.out(b, h, row, channel));
                     EXPECT_EQ(some.out_error(b, h, t, channel), all.out_error(b, h, row, channel));
                     EXPECT_EQ(narrow.out(b, h, t, channel), wide.out(b, h, row, channel));
                     EXPECT_EQ(narrow.lse(b, h, t, 0), wide.lse(b, h, row, 0));
                   });
    EXPECT_THROW(forward_tolerance(c.input(), some, profile, {.rows = {0, 1, 2, 3, 4, 5, 6, 7, 8}}),
                 Error);
  }
}

TEST(ExactForward, reads_strided_views_like_dense_ones) {
  const testing::RandomCase c = testing::random_case(5, {.tokens = 12, .dim = 5});
  const Extents e = c.problem.shape.k();
  ASSERT_GT(e.size(), 0);
  // Tokens innermost and reversed: stored (batch, head, channel, token), last token first.
  std::vector<double> storage(static_cast<std::size_t>(e.size()));
  TensorView<double> view{storage.data() + (e.tokens - 1),
                          e,
                          {e.heads * e.channels * e.tokens, e.channels * e.tokens, -1, e.tokens}};
  for_each_index(e, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t channel) {
    view(b, h, t, channel) = c.tensors.k(b, h, t, channel);
  });
  AttentionInput input = c.input();
  const ExactForward dense = exact_forward(input);
  input.k = view;
  EXPECT_EQ(exact_forward(input).out.values(), dense.out.values());
}

}  // namespace
}  // namespace ringlab
