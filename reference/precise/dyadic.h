// Exact numbers significand · 2^exponent with integers of any size: what sums and products of
// doubles are.
#pragma once

#include <gmpxx.h>

#include <utility>

namespace ringlab::precise {

class Dyadic {
 public:
  Dyadic() = default;  ///< 0
  /// Exactly x, which must be finite.
  Dyadic(double x);  // NOLINT(google-explicit-constructor): numbers are exact
  Dyadic(mpz_class significand, long exponent)
      : significand_(std::move(significand)), exponent_(exponent) {}

  const mpz_class& significand() const { return significand_; }
  long exponent() const { return exponent_; }
  bool is_zero() const { return significand_ == 0; }
  int sign() const { return sgn(significand_); }

  Dyadic& operator+=(const Dyadic& other);
  friend Dyadic operator+(Dyadic a, const Dyadic& b) { return a += b; }
  friend Dyadic operator-(const Dyadic& a) { return {-a.significand_, a.exponent_}; }
  friend Dyadic operator-(const Dyadic& a, const Dyadic& b) { return a + (-b); }
  friend Dyadic operator*(const Dyadic& a, const Dyadic& b) {
    return {a.significand_ * b.significand_, a.exponent_ + b.exponent_};
  }
  /// this += a · b, for sums of products of doubles.
  void add_product(double a, double b);
  /// -1, 0 or 1 as a is below, equal to or above b.
  friend int compare(const Dyadic& a, const Dyadic& b) { return (a - b).sign(); }

 private:
  mpz_class significand_ = 0;
  long exponent_ = 0;
};

}  // namespace ringlab::precise
