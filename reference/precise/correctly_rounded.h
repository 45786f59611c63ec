// Tier 2: attention, correctly rounded. Every element of out and lse is the number of the dtype
// nearest to the true value, ties to even: the one right answer, bit for bit.
//
// Ziv's loop: enclose the value at some precision; when both ends round to the same number, that is
// the answer. When they do not, one midpoint r of the grid lies between them, and the question is
// on which side of r the value lies. Scores are exact numbers: sums of products of doubles, times a
// double, minus ALiBi's slope times a distance. With A_k = Σ v over the kept keys of the k-th
// distinct score σ_k, B_k = the number of all its keys (and the sink), and p the dropout:
//
//   sign(out - r) = sign Σ_k (A_k - r (1 - p) B_k) e^{σ_k}      since 1 - p and Σ B_k e^{σ_k} > 0
//   sign(lse - r) = sign (Σ_k B_k e^{σ_k} - e^r)
//
// Both are sums of exponentials of exact numbers with exact coefficients, whose sign
// exponential_sum.h decides for certain, zero (a tie) included.
//
// It ends. The second question by Lindemann and Weierstrass. The loop that leads to it, because
// only neighbours of the grid are asked about: numbers of a dtype lie 2^-1074 apart or more, |out|
// is below 2^1057 (dropout included), and an interval of b bits is off by less than 2^(1100 - b)
// times a few times the number of keys: by kMostBits = 2^13 bits at the latest it reaches over one
// midpoint only. (lse beyond the range of the dtype is an infinity at any precision.)
//
// Soft-capping puts tanh into the exponents, where nothing of that is known: refused.
#pragma once

#include <cstdint>

#include "reference/core/run.h"
#include "reference/precise/double_double.h"

namespace ringlab {

/// The arithmetic that is tried first, for speed only: results have the same bits.
enum class FirstTry { double_double, multiprecision };

struct RoundingOptions {
  DType dtype = DType::f32;  ///< of out; lse is f32 (f64 for f64)
  FirstTry first_try = FirstTry::double_double;
  PreciseOptions work = {};
};

/// Counts of how hard it was.
struct RoundingEffort {
  std::int64_t elements = 0;
  std::int64_t by_double_double = 0;  ///< decided by the first try
  std::int64_t by_sign = 0;  ///< that lay so close to a midpoint that its side was asked for
  std::int64_t ties = 0;     ///< of those: exactly on it
  long most_bits = 0;        ///< precision of the intervals
  long most_sign_bits = 0;   ///< precision that decided a side
  void add(const RoundingEffort& other);
};

inline constexpr long kMostBits = 1 << 13;

/// Rows as RoundingOptions::work says; numbers of the dtype, as doubles.
struct CorrectlyRounded {
  Tensor<double> out, lse;
  RoundingEffort effort;
};

/// Usage error that says why, for problems that cannot be rounded correctly: soft-capping.
void check_roundable(const Problem& problem);

/// Every mask, grouped heads, v_dim unlike head_dim, ALiBi, sinks, dropout (kept weights times
/// 1/(1 - p), unrounded). An exact zero is +0, other values that round to zero keep their sign.
/// Rows that see no key: out = +0, lse = -inf or the sink, rounded. What the mask hides is not
/// read. Finite inputs of any size; results beyond the range of the dtype are infinities. Usage
/// error for soft-capping, for rows that are not ascending rows of the problem and for dtypes that
/// attention does not take; input error when views do not fit or a visible input is not finite.
CorrectlyRounded correctly_rounded_forward(const AttentionInput& input,
                                           const RoundingOptions& options);

}  // namespace ringlab
