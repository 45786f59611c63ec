// The backward oracle against finite differences, identities, and a hand-worked gradient.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "property_tests/oracles/quad_attention.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "tests/reference/attention/random_case.h"
#include "tests/reference/attention/random_modifiers.h"

namespace ringlab {
namespace {

using quad::Quad;

/// <dout, out> in 113 bits.
Quad objective(const AttentionInput& input, const Tensor<double>& dout) {
  const quad::Forward<Quad> forward = quad::forward<Quad>(input);
  Quad sum(0);
  for (std::size_t i = 0; i < forward.out.size(); ++i) sum += dout.values()[i] * forward.out[i];
  return sum;
}

/// Central difference of the objective with respect to one value of `tensor`, which is restored.
/// The step is a power of two, so the moved value is exact and the truncation error is O(step²).
Quad central_difference(const testing::RandomCase& c, double& x, double step) {
  const double middle = x;
  x = middle + step;
  const Quad up = objective(c.input(), c.dout);
  const double high = x;
  x = middle - step;
  const Quad down = objective(c.input(), c.dout);
  const Quad width = Quad(high) - Quad(x);
  x = middle;
  return (up - down) / width;
}

/// Values of order one, so that the third derivative is, too.
bool is_smooth(const testing::RandomCase& c) {
  for (const Tensor<double>* t : {&c.tensors.q, &c.tensors.k, &c.tensors.v, &c.dout}) {
    for (const double x : t->values()) {
      if (std::abs(x) > 4) return false;
    }
  }
  return c.problem.shape.q_tokens > 0 && c.problem.shape.kv_tokens > 0;
}

TEST(ExactBackward, agrees_with_finite_differences_in_extended_precision) {
  constexpr double kStep = 0x1p-20;
  int compared = 0;
  double worst = 0;
  for (std::uint64_t seed = 0; compared < 600; ++seed) {
    testing::RandomCase c = testing::random_case(seed, {.tokens = 6, .dim = 3});
    if (!is_smooth(c)) continue;
    const ExactBackward exact = exact_backward(c.input(), c.dout.view());
    const std::pair<Tensor<double>*, const Tensor<double>*> pairs[] = {
        {&c.tensors.q, &exact.dq}, {&c.tensors.k, &exact.dk}, {&c.tensors.v, &exact.dv}};
    for (const auto& [values, gradient] : pairs) {
      for (std::size_t i = 0; i < values->values().size(); i += 5, ++compared) {
        const Quad numeric = central_difference(c, values->values()[i], kStep);
        const double difference = static_cast<double>(abs(numeric - gradient->values()[i]));
        // Truncation: step²/6 times a third derivative, at most some hundred for such values.
        ASSERT_LT(difference, kStep * kStep * 1000) << "seed " << seed << ", value " << i;
        worst = std::max(worst, difference);
      }
    }
  }
  std::printf("  %d derivatives, largest difference %.2g at step %.2g\n", compared, worst, kStep);
}

/// An inner product, and what the certified errors of its factors and plain summation allow.
struct Inner {
  double value = 0;
  double allowed = 0;
};

Inner inner(const Tensor<double>& x, const Tensor<double>& x_error, const Tensor<double>& y) {
  Inner result;
  const double count = static_cast<double>(x.values().size());
  for (std::size_t i = 0; i < x.values().size(); ++i) {
    const double product = x.values()[i] * y.values()[i];
    result.value += product;
    result.allowed += x_error.values()[i] * std::abs(y.values()[i]) +
                      (count + 1) * 0x1p-53 * std::abs(product) + 0x1p-1070;
  }
  return result;
}

void expect_equal(const Inner& x, const Inner& y, std::uint64_t seed) {
  EXPECT_LE(std::abs(x.value - y.value), (x.allowed + y.allowed) * 1.01) << "seed " << seed;
}

TEST(ExactBackward, keeps_the_adjoint_identities) {
  // <dv, v> = <dout, out>, because out is linear in v; <dq, q> = <dk, k>, because scaling q up and
  // k down changes no score.
  double moved = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.tokens = 10});
    const ExactForward forward = exact_forward(c.input());
    const ExactBackward exact = exact_backward(c.input(), c.dout.view());
    expect_equal(inner(exact.dv, exact.dv_error, c.tensors.v),
                 inner(forward.out, forward.out_error, c.dout), seed);
    const Inner queries = inner(exact.dq, exact.dq_error, c.tensors.q);
    expect_equal(queries, inner(exact.dk, exact.dk_error, c.tensors.k), seed);
    moved += std::abs(queries.value);
  }
  EXPECT_GT(moved, 1.0) << "both sides were zero: nothing was tested";
}

TEST(ExactBackward, agrees_with_a_gradient_worked_by_hand) {
  // Two keys with equal scores, v = 0 and 4: P = 1/2, 1/2, out = 2, dP - D = -2, +2, dS = -1, +1.
  Problem problem;
  problem.shape = {1, 1, 1, 1, 2, 1, 1};
  problem.dtype = DType::f64;
  problem.scale = 0.5;
  problem.mask = Mask().bind(1, 2);
  AttentionTensors tensors{Tensor<double>(problem.shape.q(), 3.0),
                           Tensor<double>(problem.shape.k(), 7.0),
                           Tensor<double>(problem.shape.v())};
  tensors.v(0, 0, 1, 0) = 4;
  const Tensor<double> dout(problem.shape.out(), 1.0);
  const ExactBackward exact = exact_backward(tensors.input(problem), dout.view());
  EXPECT_EQ(exact.dq(0, 0, 0, 0), 0.0);   // 0.5 (-7 + 7)
  EXPECT_EQ(exact.dk(0, 0, 0, 0), -1.5);  // 0.5 · -1 · 3
  EXPECT_EQ(exact.dk(0, 0, 1, 0), 1.5);
  EXPECT_EQ(exact.dv(0, 0, 0, 0), 0.5);
  EXPECT_EQ(exact.dv(0, 0, 1, 0), 0.5);
}

TEST(ExactBackward, gives_exact_zeros_to_keys_nobody_sees_and_ignores_what_they_hold) {
  Problem problem;
  problem.shape = {1, 1, 1, 2, 3, 2, 2};
  problem.dtype = DType::f64;
  problem.scale = 0.5;                                 // not 1, which rounds nothing
  problem.mask = Mask({WindowMask{0, 0}}).bind(2, 3);  // queries stand at keys 1 and 2
  AttentionTensors tensors{Tensor<double>(problem.shape.q(), 1.5),
                           Tensor<double>(problem.shape.k(), 2.5),
                           Tensor<double>(problem.shape.v(), 3.5)};
  tensors.k(0, 0, 0, 1) = tensors.v(0, 0, 0, 0) = NAN;
  const Tensor<double> dout(problem.shape.out(), 1.0);
  const ExactBackward exact = exact_backward(tensors.input(problem), dout.view());
  const BackwardTolerance tolerance = backward_tolerance(tensors.input(problem), dout.view(), exact,
                                                         carried_profile(DType::f32, 1));
  for (std::int64_t channel : {0, 1}) {
    EXPECT_EQ(exact.dk(0, 0, 0, channel), 0);
    EXPECT_EQ(exact.dv(0, 0, 0, channel), 0);
    EXPECT_EQ(exact.dk_error(0, 0, 0, channel), 0);
    EXPECT_EQ(tolerance.dv(0, 0, 0, channel), 0);
    EXPECT_EQ(exact.dv(0, 0, 1, channel), 1);
  }
}

void expect_same(const Tensor<double>& got, const Tensor<double>& want, std::uint64_t seed) {
  ASSERT_EQ(got.values().size(), want.values().size()) << seed;
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    EXPECT_EQ(got.values()[i], want.values()[i]) << "seed " << seed << ", element " << i;
  }
}

TEST(ExactBackward, and_its_tolerance_have_the_same_bits_on_any_number_of_threads) {
  int heads = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    testing::RandomCase c = testing::random_case(seed, {.tokens = 12});
    c.problem.modifiers = testing::ModifierMaker(seed, c.problem.shape).make();
    const NumericsProfile profile = carried_profile(c.problem.dtype, 4);
    const ExactBackward one = exact_backward(c.input(), c.dout.view(), 1);
    const ExactBackward three = exact_backward(c.input(), c.dout.view(), 3);
    expect_same(three.dq, one.dq, seed);
    expect_same(three.dk, one.dk, seed);
    expect_same(three.dv, one.dv, seed);
    expect_same(three.dq_error, one.dq_error, seed);
    expect_same(three.dk_error, one.dk_error, seed);
    expect_same(three.dv_error, one.dv_error, seed);
    EXPECT_EQ(three.dsinks, one.dsinks) << seed;
    EXPECT_EQ(three.dsinks_error, one.dsinks_error) << seed;
    const auto allowed = [&](int threads) {
      return backward_tolerance(c.input(), c.dout.view(), one, profile, threads);
    };
    const BackwardTolerance alone = allowed(1), together = allowed(3);
    expect_same(together.dq, alone.dq, seed);
    expect_same(together.dk, alone.dk, seed);
    expect_same(together.dv, alone.dv, seed);
    heads += c.problem.shape.batch * c.problem.shape.kv_heads > 1;
  }
  EXPECT_GT(heads, 30);
}

TEST(ExactBackward, refuses_an_upstream_gradient_of_another_shape) {
  const testing::RandomCase c = testing::random_case(1);
  const Tensor<double> wrong({1, 1, 1, 1});
  EXPECT_THROW(exact_backward(c.input(), wrong.view()), Error);
}

}  // namespace
}  // namespace ringlab
