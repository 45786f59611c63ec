#include "reference/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/core/error.h"
#include "tests/special_doubles.h"

namespace ringlab {
namespace {

constexpr DType kAll[] = {DType::f64,  DType::f32,      DType::f16,
                          DType::bf16, DType::fp8_e4m3, DType::fp8_e5m2};

TEST(DTypeTest, names_read_back_as_the_same_type) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(parse_dtype(dtype_info(dtype).name), dtype);
  }
}

TEST(DTypeTest, unknown_names_are_usage_errors_that_quote_the_name) {
  for (const char* name : {"", "float32", "F32", "f32 ", "fp8", "fp8_e4m3"}) {
    try {
      parse_dtype(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("\"" + std::string(name) + "\""), std::string::npos);
    }
  }
}

TEST(DTypeTest, constants_are_edges_of_the_rounding) {
  for (const DType dtype : kAll) {
    const DTypeInfo& info = dtype_info(dtype);
    SCOPED_TRACE(info.name);
    EXPECT_EQ(info.unit_roundoff, std::ldexp(1.0, -info.significand_bits));
    EXPECT_EQ(round_to(dtype, info.max_finite), info.max_finite);
    EXPECT_EQ(round_to(dtype, info.min_normal), info.min_normal);
    EXPECT_EQ(round_to(dtype, info.min_subnormal), info.min_subnormal);
    // Half the least value is a tie with zero, which is even.
    EXPECT_EQ(round_to(dtype, info.min_subnormal / 2), 0.0);
    EXPECT_EQ(round_to(dtype, 1 + 2 * info.unit_roundoff), 1 + 2 * info.unit_roundoff);
    if (dtype == DType::f64) continue;
    EXPECT_EQ(round_to(dtype, 1 + info.unit_roundoff), 1.0);
    EXPECT_EQ(round_to(dtype, 1 + info.unit_roundoff * 1.5), 1 + 2 * info.unit_roundoff);
    EXPECT_EQ(round_to(dtype, info.min_subnormal * 0.75), info.min_subnormal);
    // Below min_normal the spacing is min_subnormal.
    EXPECT_EQ(round_to(dtype, info.min_normal - 0.25 * info.min_subnormal), info.min_normal);
    EXPECT_EQ(round_to(dtype, info.min_normal - info.min_subnormal),
              info.min_normal - info.min_subnormal);
  }
}

TEST(DTypeTest, overflow_is_infinity_or_nan_where_there_is_none) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::fp8_e5m2}) {
    EXPECT_EQ(round_to(dtype, 2 * dtype_info(dtype).max_finite), kInfinity);
    EXPECT_EQ(round_to(dtype, -kInfinity), -kInfinity);
  }
  EXPECT_TRUE(std::isnan(round_to(DType::fp8_e4m3, 500.0)));
  EXPECT_TRUE(std::isnan(round_to(DType::fp8_e4m3, -kInfinity)));
}

TEST(DTypeTest, nan_stays_nan) {
  for (const DType dtype : kAll) {
    EXPECT_TRUE(std::isnan(round_to(dtype, std::numeric_limits<double>::quiet_NaN())));
  }
}

TEST(DTypeTest, the_storage_type_of_a_dtype_is_visited) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const auto [found, bytes] = with_element_type(dtype, [](auto element) {
      return std::pair(dtype_of<decltype(element)>, static_cast<int>(sizeof element));
    });
    EXPECT_EQ(found, dtype);
    EXPECT_EQ(bytes, dtype_info(dtype).bytes);
  }
  static_assert(std::is_same_v<Accumulator<double>, double>);
  static_assert(std::is_same_v<Accumulator<BFloat16>, float>);
}

TEST(DTypeTest, fp8_is_not_an_attention_input) {
  for (const DType dtype : {DType::fp8_e4m3, DType::fp8_e5m2}) {
    EXPECT_THROW(with_element_type(dtype, [](auto) {}), Error);
  }
}

}  // namespace
}  // namespace ringlab
