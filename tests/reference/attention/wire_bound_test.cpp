// What a wire that rounds brings to the bounds: the same wherever in a token its largest value is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reference/attention/exact.h"
#include "tests/reference/attention/random_case.h"

namespace ringlab {
namespace {

constexpr std::uint64_t kCases = 60;
/// The order of channels changes the order of sums, and nothing else.
constexpr double kOrderOfSums = 1e-9;

/// A wire of 8-bit floats: the floor is a share of the largest magnitude of the token.
NumericsProfile rounding_wire(DType dtype) {
  NumericsProfile profile = carried_profile(dtype, 1);
  profile.u_wire = 0x1p-4;
  profile.wire_floor = 0x1p-10;
  return profile;
}

Tensor<double> reversed_channels(const Tensor<double>& x) {
  Tensor<double> y(x.extents());
  const Extents& e = x.extents();
  for_each_index(
      e, [&](auto b, auto h, auto t, auto c) { y(b, h, t, e.channels - 1 - c) = x(b, h, t, c); });
  return y;
}

testing::RandomCase reversed_values(testing::RandomCase c) {
  c.tensors.v = reversed_channels(c.tensors.v);
  c.dout = reversed_channels(c.dout);
  return c;
}

void expect_alike(const Tensor<double>& got, const Tensor<double>& want, std::uint64_t seed) {
  for (std::size_t n = 0; n < want.values().size(); ++n) {
    const double a = got.values()[n], b = want.values()[n];
    if (std::isinf(b)) {
      EXPECT_EQ(a, b) << seed;
    } else {
      EXPECT_NEAR(a, b, kOrderOfSums * std::abs(b)) << seed;
    }
  }
}

ForwardTolerance forward_bounds(const testing::RandomCase& c) {
  return forward_tolerance(c.input(), exact_forward(c.input()), rounding_wire(c.problem.dtype));
}

BackwardTolerance backward_bounds(const testing::RandomCase& c, const NumericsProfile& profile) {
  return backward_tolerance(c.input(), c.dout.view(), exact_backward(c.input(), c.dout.view()),
                            profile);
}
BackwardTolerance backward_bounds(const testing::RandomCase& c) {
  return backward_bounds(c, rounding_wire(c.problem.dtype));
}

TEST(WireBound, of_outputs_knows_no_order_of_channels) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.dtype = DType::f32});
    expect_alike(forward_bounds(reversed_values(c)).out, reversed_channels(forward_bounds(c).out),
                 seed);
  }
}

TEST(WireBound, of_gradients_knows_no_order_of_channels) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.dtype = DType::f32});
    const BackwardTolerance there = backward_bounds(reversed_values(c)), here = backward_bounds(c);
    expect_alike(there.dq, here.dq, seed);
    expect_alike(there.dk, here.dk, seed);
    expect_alike(there.dv, reversed_channels(here.dv), seed);
  }
}

/// Gradients are linear in the upstream gradient, and so are their bounds, but for underflow.
TEST(WireBound, of_gradients_is_as_many_times_as_large_as_the_upstream_gradient) {
  constexpr double kTimes = 0x1p20, kUnderflow = 1e-30;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    testing::RandomCase c = testing::random_case(seed, {.dtype = DType::f32});
    for (double& x : c.dout.values()) x *= 0x1p-20;
    const BackwardTolerance small = backward_bounds(c);
    for (double& x : c.dout.values()) x *= kTimes;
    const BackwardTolerance large = backward_bounds(c);
    for (std::size_t n = 0; n < small.dq.values().size(); ++n) {
      const double one = small.dq.values()[n], many = large.dq.values()[n];
      if (std::isinf(many) || one < kUnderflow) continue;
      EXPECT_NEAR(many, kTimes * one, 1e-6 * many) << seed;
    }
  }
}

Tensor<double> ones(const Extents& extents) { return Tensor<double>(extents, 1); }

/// One query of N keys that are all 0, so that each weighs 1/N. A wire that takes `floor` from every
/// channel of one value and adds it to all others moves dS of that key by 2 (N-1)/N² Σ|dO| floor,
/// half of it through the mean.
TEST(WireBound, of_key_gradients_has_room_for_the_floor_of_one_value_against_all_others) {
  constexpr std::int64_t kKeys = 8, kChannels = 3;
  testing::RandomCase c;
  c.problem.dtype = DType::f32;
  c.problem.shape = {1, 1, 1, 1, kKeys, 1, kChannels};
  c.problem.mask = Mask().bind(1, kKeys);
  const Shape& shape = c.problem.shape;
  c.tensors = {ones(shape.q()), Tensor<double>(shape.k()), ones(shape.v())};
  c.dout = ones(shape.out());
  NumericsProfile floor = carried_profile(DType::f32, 1);
  floor.wire_floor = 0x1p-4;
  const double moved = 2.0 * (kKeys - 1) / (kKeys * kKeys) * kChannels * floor.wire_floor;
  const BackwardTolerance allowed = backward_bounds(c, floor);
  for (const double bound : allowed.dk.values()) {
    EXPECT_GE(bound, moved * std::abs(c.problem.scale));
  }
}

}  // namespace
}  // namespace ringlab
