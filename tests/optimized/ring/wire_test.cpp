// What arrives is what left, within the bound that optimized/ring/host/wire.h states.
#include "optimized/ring/host/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "reference/core/wire_profile.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

/// Sent in one format and received, with the wire at an odd address.
template <class Element>
std::vector<double> there_and_back(WireFormat format, const std::vector<double>& values,
                                   const Extents& extents) {
  Tensor<Element> sent(extents), received(extents);
  for (std::size_t i = 0; i < values.size(); ++i) {
    sent.values()[i] = static_cast<Element>(values[i]);
  }
  const auto bytes = static_cast<std::size_t>(wire_bytes(format, dtype_of<Element>, extents));
  std::vector<std::byte> wire(bytes + 1, std::byte{0xff});
  const Tensor<Element>& constant = sent;
  encode<Element>(format, constant.view(), std::span(wire).subspan(1));
  decode<Element>(format, std::span<const std::byte>(wire).subspan(1), received.view());
  std::vector<double> result;
  for (const Element x : received.values()) result.push_back(static_cast<double>(x));
  return result;
}

std::vector<double> there_and_back(DType dtype, WireFormat format,
                                   const std::vector<double>& values, const Extents& extents) {
  return with_element_type(dtype, [&](auto element) {
    return there_and_back<decltype(element)>(format, values, extents);
  });
}

struct LossyRoute {
  DType dtype;
  WireFormat format;
};
constexpr LossyRoute kLossyRoutes[] = {
    {DType::f64, WireFormat::f32},  {DType::f64, WireFormat::bf16}, {DType::f64, WireFormat::fp8},
    {DType::f32, WireFormat::bf16}, {DType::f32, WireFormat::fp8},  {DType::f16, WireFormat::fp8},
    {DType::bf16, WireFormat::fp8}};

std::string name_of(const LossyRoute& route) {
  return std::string(dtype_info(route.dtype).name) + " as format " +
         std::to_string(static_cast<int>(route.format));
}

NumericsProfile profile_of(const LossyRoute& route) {
  return wire_profile(carried_profile(route.dtype, 1), route.format, route.dtype);
}

/// Every row keeps the bound, which the worst value comes near to.
double worst_ratio(const LossyRoute& route, const std::vector<double>& values,
                   const Extents& extents) {
  const NumericsProfile profile = profile_of(route);
  const std::vector<double> got = there_and_back(route.dtype, route.format, values, extents);
  const auto channels = static_cast<std::size_t>(extents.channels);
  double worst = 0;
  for (std::size_t row = 0; row < values.size(); row += channels) {
    double largest = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      largest = std::max(largest, std::abs(values[row + c]));
    }
    for (std::size_t i = row; i < row + channels; ++i) {
      const double bound = wire_error(profile, std::abs(values[i]), largest);
      const double error = std::abs(got[i] - values[i]);
      EXPECT_LE(error, bound) << name_of(route) << ": " << values[i] << " became " << got[i];
      EXPECT_TRUE(std::isinf(bound) || std::signbit(got[i]) == std::signbit(values[i]));
      if (bound > 0 && std::isfinite(bound)) worst = std::max(worst, error / bound);
    }
  }
  return worst;
}

TEST(Wire, a_format_that_is_not_narrower_is_no_format) {
  EXPECT_FALSE(is_lossy(WireFormat::f32, DType::f32));
  EXPECT_FALSE(is_lossy(WireFormat::f32, DType::bf16));
  EXPECT_FALSE(is_lossy(WireFormat::bf16, DType::f16));
  EXPECT_FALSE(is_lossy(WireFormat::bf16, DType::bf16));
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    EXPECT_FALSE(is_lossy(WireFormat::exact, dtype));
    EXPECT_TRUE(is_lossy(WireFormat::fp8, dtype));
    EXPECT_EQ(wire_bytes(WireFormat::exact, dtype, {2, 3, 5, 7}),
              2 * 3 * 5 * 7 * dtype_info(dtype).bytes);
  }
  for (const LossyRoute& route : kLossyRoutes) EXPECT_TRUE(is_lossy(route.format, route.dtype));
}

TEST(Wire, an_exact_profile_is_left_alone) {
  const NumericsProfile profile =
      wire_profile(carried_profile(DType::f16, 3), WireFormat::bf16, DType::f16);
  EXPECT_EQ(profile.u_wire, 0);
  EXPECT_EQ(wire_error(profile, 3, 5), 0);
}

TEST(Wire, fp8_has_one_scale_for_each_started_block_of_64_channels) {
  EXPECT_EQ(wire_bytes(WireFormat::fp8, DType::f32, {1, 2, 3, 64}), 6 * (64 + 4));
  EXPECT_EQ(wire_bytes(WireFormat::fp8, DType::f32, {1, 2, 3, 65}), 6 * (65 + 8));
  EXPECT_EQ(wire_bytes(WireFormat::fp8, DType::bf16, {1, 1, 1, 1}), 1 + 4);
  EXPECT_EQ(wire_bytes(WireFormat::fp8, DType::f64, {1, 1, 1, 1}), 1 + 8);
  EXPECT_EQ(wire_bytes(WireFormat::fp8, DType::f32, {1, 2, 0, 64}), 0);
  EXPECT_EQ(wire_bytes(WireFormat::fp8, DType::f32, {1, 2, 3, 0}), 0);
}

TEST(Wire, empty_tensors_travel) {
  for (const LossyRoute& route : kLossyRoutes) {
    EXPECT_TRUE(there_and_back(route.dtype, route.format, {}, {1, 2, 0, 8}).empty());
    EXPECT_TRUE(there_and_back(route.dtype, route.format, {}, {1, 2, 3, 0}).empty());
  }
}

TEST(Wire, random_values_of_every_size_keep_the_bound_and_come_near_to_it) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const LossyRoute& route : kLossyRoutes) {
    const DTypeInfo& info = dtype_info(route.dtype);
    const int low = std::ilogb(info.min_subnormal), high = std::ilogb(info.max_finite);
    double worst = 0;
    for (int round = 0; round < repetitions(3000); ++round) {
      const auto channels = static_cast<std::int64_t>(1 + random() % 150);
      const int size = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
      const int spread = static_cast<int>(random() % 30);
      std::vector<double> values;
      for (std::int64_t i = 0; i < 2 * channels; ++i) {
        const int down = spread ? static_cast<int>(random() % static_cast<unsigned>(spread)) : 0;
        const double x = round_to(route.dtype, std::ldexp(normal(random), size - down));
        values.push_back(std::isfinite(x) ? x : info.max_finite);
      }
      worst = std::max(worst, worst_ratio(route, values, {1, 1, 2, channels}));
    }
    EXPECT_GT(worst, 0.5) << name_of(route);
  }
}

TEST(Wire, every_f16_and_bf16_keeps_the_bound_alone_in_its_block) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double x =
          dtype == DType::f16 ? decode_small<HalfFormat>(bits) : decode_small<BFloat16Format>(bits);
      const std::vector<double> got = there_and_back(dtype, WireFormat::fp8, {x}, {1, 1, 1, 1});
      if (!std::isfinite(x)) {
        ASSERT_TRUE(std::isnan(got[0])) << x;
      } else {
        ASSERT_LE(std::abs(got[0] - x), 0x1p-4 * std::abs(x)) << x;
        ASSERT_EQ(std::signbit(got[0]), std::signbit(x));
      }
    }
  }
}

TEST(Wire, every_bf16_survives_the_bf16_wire_of_wider_types) {
  std::vector<double> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double x = decode_small<BFloat16Format>(bits);
    if (!std::isnan(x)) values.push_back(x);
  }
  const Extents extents{1, 1, 1, static_cast<std::int64_t>(values.size())};
  for (const DType dtype : {DType::f64, DType::f32}) {
    EXPECT_EQ(there_and_back(dtype, WireFormat::bf16, values, extents), values);
  }
}

TEST(Wire, every_f32_pattern_survives_as_f32) {
  std::mt19937 random(3);
  std::vector<double> values;
  for (int i = 0; i < 200000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(x)) values.push_back(static_cast<double>(x));
  }
  const Extents extents{1, 1, 1, static_cast<std::int64_t>(values.size())};
  EXPECT_EQ(there_and_back(DType::f64, WireFormat::f32, values, extents), values);
}

TEST(Wire, e4m3_numbers_times_a_power_of_two_survive_fp8_when_their_largest_is_448) {
  std::vector<double> codes;
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const double x = decode_small<E4M3Format>(bits);
    if (!std::isnan(x)) codes.push_back(x);
  }
  // In blocks of 64 that each hold 448, behind a leading one.
  std::vector<double> values;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (values.size() % 64 == 0) values.push_back(448);
    values.push_back(codes[i]);
  }
  const Extents extents{1, 1, 1, static_cast<std::int64_t>(values.size())};
  for (const int power : {-100, -3, 0, 1, 100}) {
    std::vector<double> scaled;
    for (const double x : values) scaled.push_back(std::ldexp(x, power));
    EXPECT_EQ(there_and_back(DType::f32, WireFormat::fp8, scaled, extents), scaled);
  }
}

TEST(Wire, a_block_takes_no_scale_from_its_neighbours) {
  std::vector<double> values(130, 1.0);
  for (std::size_t i = 64; i < 128; ++i) values[i] = 0x1p100;
  values[128] = values[129] = 0x1p-100;
  EXPECT_EQ(there_and_back(DType::f32, WireFormat::fp8, values, {1, 1, 1, 130}), values);
  // Nor does a token.
  EXPECT_EQ(there_and_back(DType::f32, WireFormat::fp8, values, {1, 1, 130, 1}), values);
}

TEST(Wire, the_largest_numbers_do_not_overflow_in_fp8) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const double top = dtype_info(dtype).max_finite;
    for (const double x : {top, -top}) {
      const double got = there_and_back(dtype, WireFormat::fp8, {x}, {1, 1, 1, 1})[0];
      EXPECT_TRUE(std::isfinite(got)) << dtype_info(dtype).name;
      EXPECT_LE(std::abs(got - x), 0x1p-4 * top);
    }
  }
}

TEST(Wire, the_least_numbers_lose_nothing_relative_to_themselves_in_fp8) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const double least = dtype_info(dtype).min_subnormal;
    for (int k = 1; k <= 448; ++k) {
      const double x = k * least;
      if (round_to(dtype, x) != x) continue;
      const std::vector<double> got =
          there_and_back(dtype, WireFormat::fp8, {x, least}, {1, 1, 1, 2});
      EXPECT_LE(std::abs(got[0] - x), 0x1p-4 * x) << dtype_info(dtype).name << " " << k;
      if (k <= 16) {
        EXPECT_EQ(got[0], x);
      }
    }
  }
}

TEST(Wire, what_is_too_large_for_a_rounded_format_becomes_infinite_and_has_no_bound) {
  const double huge = 0x1p200, f32_top = dtype_info(DType::f32).max_finite;
  EXPECT_TRUE(std::isinf(there_and_back(DType::f64, WireFormat::f32, {huge}, {1, 1, 1, 1})[0]));
  EXPECT_TRUE(std::isinf(wire_error(profile_of({DType::f64, WireFormat::f32}), huge, huge)));
  EXPECT_TRUE(std::isinf(there_and_back(DType::f32, WireFormat::bf16, {f32_top}, {1, 1, 1, 1})[0]));
  EXPECT_TRUE(std::isinf(wire_error(profile_of({DType::f32, WireFormat::bf16}), 0, f32_top)));
}

TEST(Wire, infinities_and_nan_become_nan_in_fp8_and_leave_their_neighbours_alone) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const std::vector<double> got = there_and_back(
        dtype, WireFormat::fp8, {1.5, infinity, -0.25, nan, -infinity, 0, -0.0}, {1, 1, 1, 7});
    EXPECT_EQ(got[0], 1.5);
    EXPECT_TRUE(std::isnan(got[1]) && std::isnan(got[3]) && std::isnan(got[4]));
    EXPECT_EQ(got[2], -0.25);
    EXPECT_EQ(got[5], 0);
    EXPECT_TRUE(got[6] == 0 && std::signbit(got[6]));
  }
}

TEST(Wire, nan_stays_nan_in_the_rounded_formats) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const LossyRoute& route : kLossyRoutes) {
    EXPECT_TRUE(std::isnan(there_and_back(route.dtype, route.format, {nan}, {1, 1, 1, 1})[0]));
  }
}

TEST(Wire, the_bytes_do_not_depend_on_what_was_in_the_buffer) {
  Tensor<float> tensor({1, 2, 3, 70}, 1.25f);
  const Tensor<float>& constant = tensor;
  const auto bytes =
      static_cast<std::size_t>(wire_bytes(WireFormat::fp8, DType::f32, tensor.extents()));
  std::vector<std::byte> first(bytes, std::byte{0}), second(bytes, std::byte{0xaa});
  encode<float>(WireFormat::fp8, constant.view(), first);
  encode<float>(WireFormat::fp8, constant.view(), second);
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace ringlab::ring
