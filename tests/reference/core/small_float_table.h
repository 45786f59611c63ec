// The values of a small format written down from its definition, not from the code under test.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace ringlab::testing {

/// What defines a format, and what it does beyond its largest value.
struct FormatRules {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
};

constexpr FormatRules kHalfRules = {5, 10, true};
constexpr FormatRules kBFloat16Rules = {8, 7, true};
constexpr FormatRules kE4M3Rules = {4, 3, false};
constexpr FormatRules kE5M2Rules = {5, 2, true};

/// Value of a non-negative pattern: m · 2^(1-bias-M) when the exponent field is 0, else
/// (2^M + m) · 2^(e-bias-M). Patterns past the largest finite value continue the sequence.
inline double value_of(const FormatRules& rules, std::uint32_t pattern) {
  const int bias = (1 << (rules.exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(pattern >> rules.mantissa_bits);
  const double hidden = exponent == 0 ? 0.0 : std::ldexp(1.0, rules.mantissa_bits);
  const auto mantissa = static_cast<double>(pattern % (1u << rules.mantissa_bits));
  const int power = (exponent == 0 ? 1 : exponent) - bias - rules.mantissa_bits;
  return std::ldexp(hidden + mantissa, power);
}

/// Number of finite non-negative patterns: 0 … this - 1 are finite, this one is the overflow.
inline std::uint32_t finite_patterns(const FormatRules& rules) {
  const std::uint32_t all = 1u << (rules.exponent_bits + rules.mantissa_bits);
  return rules.has_infinity ? all - (1u << rules.mantissa_bits) : all - 1;
}

/// midpoint[i] lies halfway between pattern i and i + 1 (exact in double). The last one is where
/// overflow begins.
inline std::vector<double> midpoints(const FormatRules& rules) {
  std::vector<double> middle(finite_patterns(rules));
  for (std::uint32_t i = 0; i < middle.size(); ++i) {
    middle[i] = (value_of(rules, i) + value_of(rules, i + 1)) / 2;
  }
  return middle;
}

}  // namespace ringlab::testing
