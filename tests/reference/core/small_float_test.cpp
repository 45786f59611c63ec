#include "reference/core/small_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "tests/reference/core/small_float_table.h"
#include "tests/special_doubles.h"

namespace ringlab {
namespace {

using testing::FormatRules;

template <class Small>
struct RulesOf;
template <>
struct RulesOf<Half> {
  static constexpr FormatRules rules = testing::kHalfRules;
};
template <>
struct RulesOf<BFloat16> {
  static constexpr FormatRules rules = testing::kBFloat16Rules;
};
template <>
struct RulesOf<Fp8E4M3> {
  static constexpr FormatRules rules = testing::kE4M3Rules;
};
template <>
struct RulesOf<Fp8E5M2> {
  static constexpr FormatRules rules = testing::kE5M2Rules;
};

template <class Small>
class SmallFloatTest : public ::testing::Test {
 protected:
  using Format = typename Small::Format;
  static constexpr FormatRules rules = RulesOf<Small>::rules;
  static constexpr std::uint32_t kSign = 1u << Format::sign_shift;

  static Small from_bits(std::uint32_t bits) {
    Small small;
    small.bits = static_cast<decltype(small.bits)>(bits);
    return small;
  }
  static std::uint32_t rounded(double x) { return Small(x).bits; }
};

using AllSmallFloats = ::testing::Types<Half, BFloat16, Fp8E4M3, Fp8E5M2>;

struct SmallFloatNames {
  template <class Small>
  static std::string GetName(int) {
    if (std::is_same_v<Small, Half>) return "f16";
    if (std::is_same_v<Small, BFloat16>) return "bf16";
    return std::is_same_v<Small, Fp8E4M3> ? "fp8_e4m3" : "fp8_e5m2";
  }
};

TYPED_TEST_SUITE(SmallFloatTest, AllSmallFloats, SmallFloatNames);

TYPED_TEST(SmallFloatTest, every_finite_pattern_has_the_value_its_definition_gives) {
  for (std::uint32_t bits = 0; bits < testing::finite_patterns(this->rules); ++bits) {
    const double value = testing::value_of(this->rules, bits);
    ASSERT_EQ(static_cast<double>(this->from_bits(bits)), value) << bits;
    ASSERT_EQ(static_cast<double>(this->from_bits(bits | this->kSign)), -value) << bits;
    ASSERT_EQ(static_cast<double>(static_cast<float>(this->from_bits(bits))), value) << bits;
  }
}

TYPED_TEST(SmallFloatTest, every_pattern_survives_the_way_to_double_and_back) {
  for (std::uint32_t bits = 0; bits < 2 * this->kSign; ++bits) {
    const TypeParam small = this->from_bits(bits);
    const auto wide = static_cast<double>(small);
    const std::uint32_t back = this->rounded(wide);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(static_cast<double>(TypeParam(wide)))) << bits;
      ASSERT_EQ(back & this->kSign, bits & this->kSign) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
    ASSERT_EQ(std::signbit(wide), (bits & this->kSign) != 0) << bits;
  }
}

TYPED_TEST(SmallFloatTest, patterns_past_the_largest_value_are_infinity_and_nan) {
  const std::uint32_t overflow = testing::finite_patterns(this->rules);
  const auto first = static_cast<double>(this->from_bits(overflow));
  EXPECT_TRUE(this->rules.has_infinity ? first == kInfinity : std::isnan(first));
  for (std::uint32_t bits = overflow + 1; bits < this->kSign; ++bits) {
    ASSERT_TRUE(std::isnan(static_cast<double>(this->from_bits(bits)))) << bits;
    ASSERT_TRUE(std::isnan(static_cast<float>(this->from_bits(bits)))) << bits;
  }
}

// A double just beside a midpoint becomes the midpoint when it is first rounded to float: a second
// rounding then goes to even, on the wrong side.
TYPED_TEST(SmallFloatTest, rounds_doubles_beside_every_midpoint_once) {
  const std::vector<double> middle = testing::midpoints(this->rules);
  for (std::uint32_t i = 0; i < middle.size(); ++i) {
    const std::uint32_t even = i % 2 == 0 ? i : i + 1;
    ASSERT_EQ(this->rounded(middle[i]), even) << middle[i];
    ASSERT_EQ(this->rounded(-middle[i]), even | this->kSign) << middle[i];
    ASSERT_EQ(this->rounded(std::nextafter(middle[i], 0.0)), i) << middle[i];
    ASSERT_EQ(this->rounded(std::nextafter(middle[i], kInfinity)), i + 1) << middle[i];
    ASSERT_EQ(this->rounded(-std::nextafter(middle[i], kInfinity)), (i + 1) | this->kSign);
  }
}

TYPED_TEST(SmallFloatTest, differs_from_rounding_by_way_of_float) {
  const double middle = testing::midpoints(this->rules)[this->kSign / 4];
  const double above = std::nextafter(middle, kInfinity);
  const double by_way_of_float = static_cast<float>(above);
  EXPECT_EQ(this->rounded(above), this->kSign / 4 + 1);
  EXPECT_EQ(this->rounded(by_way_of_float), this->kSign / 4);
}

TYPED_TEST(SmallFloatTest, huge_tiny_and_special_doubles_keep_their_sign) {
  const std::uint32_t overflow = testing::finite_patterns(this->rules);
  for (const double sign : {1.0, -1.0}) {
    const std::uint32_t sign_bit = sign < 0 ? this->kSign : 0;
    for (const double huge : {kInfinity, std::numeric_limits<double>::max(), 1e200}) {
      EXPECT_EQ(this->rounded(sign * huge), overflow | sign_bit);
    }
    for (const double tiny : {0.0, 0x1p-1074, 0x1.fffffffffffffp-1023, 0x1p-1022, 1e-200}) {
      EXPECT_EQ(this->rounded(sign * tiny), sign_bit);
    }
    const TypeParam nan(std::copysign(kNaN, sign));
    EXPECT_TRUE(std::isnan(static_cast<double>(nan)));
    EXPECT_EQ(nan.bits & this->kSign, sign_bit);
  }
}

// g++ 12.2 at -O1 and above reduces `cond ? round(x) : x` to x when round() masks float bits.
template <class Small>
[[gnu::noinline]] double round_if(bool wanted, double x) {
  return wanted ? static_cast<double>(Small(x)) : x;
}
template <class Small>
[[gnu::noinline]] float round_if(bool wanted, float x) {
  return wanted ? static_cast<float>(Small(x)) : x;
}

TYPED_TEST(SmallFloatTest, a_rounding_chosen_by_a_conditional_keeps_its_effect) {
  const double x = 1.0 + 0x1p-12;
  EXPECT_EQ(round_if<TypeParam>(true, x), 1.0);
  EXPECT_EQ(round_if<TypeParam>(false, x), x);
  EXPECT_EQ(round_if<TypeParam>(true, static_cast<float>(x)), 1.0f);
  EXPECT_EQ(round_if<TypeParam>(false, static_cast<float>(x)), static_cast<float>(x));
}

TEST(SmallFloatTest, well_known_values) {
  EXPECT_EQ(Half(1.0).bits, 0x3c00);
  EXPECT_EQ(Half(65519.99).bits, 0x7bff);  // below the midpoint 65520
  EXPECT_EQ(Half(65520.0).bits, 0x7c00);
  EXPECT_EQ(BFloat16(-2.0).bits, 0xc000);
  EXPECT_EQ(BFloat16(3.14159).bits, 0x4049);
  EXPECT_EQ(Fp8E4M3(448.0).bits, 0x7e);
  EXPECT_EQ(Fp8E4M3(464.0).bits, 0x7e);  // the tie goes to the even pattern
  EXPECT_EQ(Fp8E4M3(464.5).bits, 0x7f);  // NaN: there is no infinity
  EXPECT_EQ(Fp8E4M3(-kInfinity).bits, 0xff);
  EXPECT_EQ(Fp8E5M2(57344.0).bits, 0x7b);
  EXPECT_EQ(Fp8E5M2(61440.0).bits, 0x7c);  // the tie goes to infinity
}

static_assert(Half(0.1).bits == 0x2e66, "rounding happens at compile time too");
static_assert(static_cast<double>(Fp8E5M2(0.3)) == 0.3125);

}  // namespace
}  // namespace ringlab
