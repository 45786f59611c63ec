// The bound on a kernel whose K and V went over a lossy wire: kept by correct kernels always, and
// not much wider than what is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optimized/ring/host/wire.h"
#include "reference/attention/exact.h"
#include "reference/core/wire_profile.h"
#include "tests/reference/attention/emulated_backward.h"
#include "tests/reference/attention/random_case.h"

namespace ringlab::ring {
namespace {

using testing::KernelOptions;
using testing::RandomCase;

struct Route {
  DType dtype;
  WireFormat format;
  const char* name;
};
constexpr Route kLossy[] = {
    {DType::f64, WireFormat::f32, "f64 as f32"},  {DType::f64, WireFormat::bf16, "f64 as bf16"},
    {DType::f64, WireFormat::fp8, "f64 as fp8"},  {DType::f32, WireFormat::bf16, "f32 as bf16"},
    {DType::f32, WireFormat::fp8, "f32 as fp8"},  {DType::f16, WireFormat::fp8, "f16 as fp8"},
    {DType::bf16, WireFormat::fp8, "bf16 as fp8"}};

/// A mistake on the way: changes the bytes of a tensor.
using Alter = void (*)(std::span<std::byte> wire, const Extents& extents);
void leave_alone(std::span<std::byte>, const Extents&) {}

/// Each block of f32 values decoded with the scale of the block before.
void take_the_scale_before(std::span<std::byte> wire, const Extents& extents) {
  const std::int64_t blocks = (extents.channels + kWireBlock - 1) / kWireBlock;
  const auto scales =
      static_cast<std::size_t>(extents.batch * extents.heads * extents.tokens * blocks) *
      sizeof(float);
  if (scales >= 2 * sizeof(float)) {
    std::memmove(&wire[sizeof(float)], wire.data(), scales - sizeof(float));
  }
}

/// Numbers sent as f32 that had been f16 somewhere.
void round_to_half(std::span<std::byte> wire, const Extents&) {
  for (std::size_t at = 0; at < wire.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &wire[at], sizeof value);
    value = static_cast<float>(Half(static_cast<double>(value)));
    std::memcpy(&wire[at], &value, sizeof value);
  }
}

template <class Element>
Tensor<double> received(WireFormat format, const Tensor<double>& tensor, Alter alter) {
  Tensor<Element> sent(tensor.extents()), arrived(tensor.extents());
  std::transform(tensor.values().begin(), tensor.values().end(), sent.values().begin(),
                 [](double x) { return static_cast<Element>(x); });
  std::vector<std::byte> wire(
      static_cast<std::size_t>(wire_bytes(format, dtype_of<Element>, tensor.extents())));
  encode<Element>(format, std::as_const(sent).view(), wire);
  alter(wire, tensor.extents());
  decode<Element>(format, wire, arrived.view());
  Tensor<double> result(tensor.extents());
  std::transform(arrived.values().begin(), arrived.values().end(), result.values().begin(),
                 [](Element x) { return static_cast<double>(x); });
  return result;
}

/// The case as a rank sees it, all of whose keys and values came from elsewhere.
RandomCase after_the_wire(const RandomCase& c, WireFormat format, Alter alter = leave_alone) {
  RandomCase result = c;
  with_element_type(c.problem.dtype, [&](auto element) {
    result.tensors.k = received<decltype(element)>(format, c.tensors.k, alter);
    result.tensors.v = received<decltype(element)>(format, c.tensors.v, alter);
  });
  return result;
}

KernelOptions options_of(std::uint64_t seed) {
  return {.tile = 1 + static_cast<std::int64_t>(seed % 7),
          .powers_of_two = seed % 2 == 0,
          .flush_to_zero = seed % 5 == 0};
}

class Study {
 public:
  void add(std::uint64_t seed, const TensorReport& report, const Tensor<double>& allowed) {
    for (const double bound : allowed.values()) {
      ++elements_;
      unpromised_ += std::isinf(bound);
    }
    if (!report.passed()) {
      ADD_FAILURE() << "seed " << seed << ": " << Report{{report}}.summary();
    }
    ratios_.push_back(report.worst.ratio);
  }
  void finish(const std::string& name) {
    std::sort(ratios_.begin(), ratios_.end());
    std::printf(
        "  %-16s %5zu tensors, %.1f %% of elements without a promise, worst error / bound "
        "%.3f, median of cases %.3f\n",
        name.c_str(), ratios_.size(), 100.0 * unpromised_share(), ratios_.back(),
        ratios_[ratios_.size() / 2]);
  }
  double unpromised_share() const {
    return static_cast<double>(unpromised_) / static_cast<double>(elements_);
  }
  double worst() const { return ratios_.back(); }

 private:
  std::vector<double> ratios_;
  std::int64_t elements_ = 0, unpromised_ = 0;
};

TEST(WireBound, is_kept_by_a_correct_kernel_and_not_much_wider_than_what_is_seen) {
  for (const Route& route : kLossy) {
    Study out, lse;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
      const RandomCase c =
          testing::random_case(seed, {.tokens = 24, .dim = 9, .dtype = route.dtype});
      const KernelOptions options = options_of(seed);
      const NumericsProfile profile =
          wire_profile(testing::emulated_profile(c.problem, options), route.format, route.dtype);
      const ExactForward exact = exact_forward(c.input());
      const ForwardTolerance allowed = forward_tolerance(c.input(), exact, profile);
      const RandomCase arrived = after_the_wire(c, route.format);
      const AttentionOutput got = run_emulated_kernel(arrived.input(), options);
      const Report report = compare_forward(got, exact, allowed);
      out.add(seed, report.tensors[0], allowed.out);
      lse.add(seed, report.tensors[1], allowed.lse);
    }
    out.finish(std::string(route.name) + " out");
    lse.finish(std::string(route.name) + " lse");
    EXPECT_GT(out.worst(), 0.1) << "a bound this wide finds nothing";
    EXPECT_GT(lse.worst(), 0.1) << "a bound this wide finds nothing";
    // Rows with scores in the hundreds, of which there are many, lose their softmax to 8 bits.
    EXPECT_LT(out.unpromised_share(), route.format == WireFormat::f32 ? 0.01 : 0.6);
  }
}

TEST(WireBound, is_kept_by_gradients) {
  for (const Route& route : kLossy) {
    Study dq, dk, dv;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      const RandomCase c =
          testing::random_case(seed, {.tokens = 16, .dim = 7, .dtype = route.dtype});
      const KernelOptions options = options_of(seed);
      const NumericsProfile profile =
          wire_profile(testing::emulated_profile(c.problem, options), route.format, route.dtype);
      const ExactBackward exact = exact_backward(c.input(), c.dout.view());
      const BackwardTolerance allowed =
          backward_tolerance(c.input(), c.dout.view(), exact, profile);
      const RandomCase arrived = after_the_wire(c, route.format);
      const testing::Gradients got = run_emulated_backward(arrived.input(), c.dout, options);
      dq.add(seed, compare("dq", got.dq.view(), exact.dq.view(), allowed.dq.view()), allowed.dq);
      dk.add(seed, compare("dk", got.dk.view(), exact.dk.view(), allowed.dk.view()), allowed.dk);
      dv.add(seed, compare("dv", got.dv.view(), exact.dv.view(), allowed.dv.view()), allowed.dv);
    }
    dq.finish(std::string(route.name) + " dq");
    dk.finish(std::string(route.name) + " dk");
    dv.finish(std::string(route.name) + " dv");
    for (const Study* study : {&dq, &dk, &dv}) EXPECT_GT(study->worst(), 0.1);
  }
}

TEST(WireBound, is_needed) {
  // The same results, held to the bound of an exact wire.
  for (const Route& route : kLossy) {
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const RandomCase c =
          testing::random_case(seed, {.tokens = 16, .dim = 5, .dtype = route.dtype});
      const ExactForward exact = exact_forward(c.input());
      const ForwardTolerance allowed =
          forward_tolerance(c.input(), exact, testing::emulated_profile(c.problem, {}));
      const RandomCase arrived = after_the_wire(c, route.format);
      wrong += !compare_forward(testing::run_emulated_kernel(arrived.input(), {}), exact, allowed)
                    .passed();
    }
    EXPECT_GT(wrong, 30) << route.name;
  }
}

/// Share of random cases in which a mistake on the way is noticed.
double caught(const Route& route, Alter alter) {
  int found = 0, cases = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed, ++cases) {
    const RandomCase c = testing::random_case(seed, {.tokens = 16, .dim = 5, .dtype = route.dtype});
    const NumericsProfile profile =
        wire_profile(testing::emulated_profile(c.problem, {}), route.format, route.dtype);
    const ExactForward exact = exact_forward(c.input());
    const ForwardTolerance allowed = forward_tolerance(c.input(), exact, profile);
    const RandomCase arrived = after_the_wire(c, route.format, alter);
    const AttentionOutput got = testing::run_emulated_kernel(arrived.input(), {});
    found += !compare_forward(got, exact, allowed).passed();
  }
  std::printf("  %s: caught in %d of %d cases\n", route.name, found, cases);
  return static_cast<double>(found) / cases;
}

TEST(WireBound, finds_a_block_decoded_with_the_scale_of_the_block_before) {
  EXPECT_GT(caught({DType::f32, WireFormat::fp8, "f32 as fp8"}, take_the_scale_before), 0.1);
}

TEST(WireBound, finds_numbers_that_went_through_f16_on_a_wire_of_f32) {
  EXPECT_GT(caught({DType::f64, WireFormat::f32, "f64 as f32"}, round_to_half), 0.5);
}

TEST(WireBound, promises_nothing_about_keys_that_overflow_on_the_way) {
  RandomCase c;
  c.problem.dtype = DType::f64;
  c.problem.shape = {1, 1, 1, 1, 1, 1, 1};
  c.problem.mask = Mask().bind(1, 1);
  c.tensors = {Tensor<double>({1, 1, 1, 1}, 0.0), Tensor<double>({1, 1, 1, 1}, 0x1p200),
               Tensor<double>({1, 1, 1, 1}, 1.0)};
  const NumericsProfile profile =
      wire_profile(carried_profile(DType::f64, 1), WireFormat::f32, DType::f64);
  const ExactForward exact = exact_forward(c.input());
  const ForwardTolerance allowed = forward_tolerance(c.input(), exact, profile);
  EXPECT_TRUE(std::isinf(allowed.out(0, 0, 0, 0)));
  EXPECT_TRUE(std::isinf(allowed.lse(0, 0, 0, 0)));
}

}  // namespace
}  // namespace ringlab::ring
