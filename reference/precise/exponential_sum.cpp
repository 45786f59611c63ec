#include "reference/precise/exponential_sum.h"

#include <algorithm>
#include <iterator>

#include "reference/precise/interval.h"

namespace ringlab::precise {
namespace {

/// Descending exponents, each once, no zeros.
std::vector<ExponentialTerm> independent(std::vector<ExponentialTerm> terms) {
  std::ranges::sort(terms, [](const ExponentialTerm& a, const ExponentialTerm& b) {
    return compare(a.exponent, b.exponent) > 0;
  });
  std::vector<ExponentialTerm> merged;
  for (ExponentialTerm& term : terms) {
    if (!merged.empty() && compare(merged.back().exponent, term.exponent) == 0) {
      merged.back().coefficient += term.coefficient;
    } else {
      merged.push_back(std::move(term));
    }
  }
  std::erase_if(merged, [](const ExponentialTerm& term) { return term.coefficient.is_zero(); });
  return merged;
}

/// Divided by the largest exponential, so that far smaller ones need no precision.
Interval scaled_sum(const std::vector<ExponentialTerm>& terms) {
  Interval sum;
  for (const ExponentialTerm& term : terms) {
    const Interval power = exp(Interval(term.exponent - terms.front().exponent));
    sum = sum + Interval(term.coefficient) * power;
  }
  return sum;
}

}  // namespace

SignOfSum sign_of_sum(std::vector<ExponentialTerm> terms) {
  terms = independent(std::move(terms));
  if (terms.empty()) return {};
  const int sign = terms.front().coefficient.sign();
  const bool all_agree = std::ranges::all_of(
      terms, [&](const ExponentialTerm& term) { return term.coefficient.sign() == sign; });
  if (all_agree) return {.sign = sign};
  for (long bits = 128;; bits *= 2) {
    const PrecisionScope scope(bits);
    if (const int found = scaled_sum(terms).sign(); found != 0)
      return {.sign = found, .bits = bits};
  }
}

}  // namespace ringlab::precise
