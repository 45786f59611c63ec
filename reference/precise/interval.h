// Intervals with ends of any precision: MPFI, with operators. Every operation rounds its ends
// outwards, so the true value stays inside whatever is computed.
#pragma once

#include <mpfi.h>

#include <cstdint>

#include "reference/precise/dyadic.h"

namespace ringlab::precise {

/// Significant bits of the ends of all intervals this thread makes; 53 … many.
class PrecisionScope {
 public:
  explicit PrecisionScope(long bits);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;
  static long bits();

 private:
  long before_;
};

class Interval {
 public:
  Interval();          // 0
  Interval(double x);  // NOLINT(google-explicit-constructor): numbers are exact
  explicit Interval(const Dyadic& x);
  Interval(const Interval& other);
  Interval(Interval&& other) noexcept;
  Interval& operator=(Interval other) noexcept;
  ~Interval();
  /// a · b; exact from 106 bits on.
  static Interval product(double a, double b);
  /// -radius … radius.
  static Interval around_zero(double radius);

  mpfr_srcptr lower() const { return &value_->left; }
  mpfr_srcptr upper() const { return &value_->right; }
  /// -1 or 1 when all numbers inside have that sign, else 0.
  int sign() const;
  /// Contains no other number than 0.
  bool is_zero() const;
  /// The lower end, rounded: for choosing a shift.
  double high() const;

  friend Interval operator+(const Interval& a, const Interval& b);
  friend Interval operator-(const Interval& a, const Interval& b);
  friend Interval operator*(const Interval& a, const Interval& b);
  friend Interval operator/(const Interval& a, const Interval& b);
  friend Interval operator-(const Interval& a);
  /// this += a · b, without intermediate objects.
  void add_product(const Interval& a, double b);

  friend Interval exp(const Interval& x);
  friend Interval log(const Interval& x);
  friend Interval tanh(const Interval& x);
  friend Interval sech_squared(const Interval& x);

 private:
  mpfi_t value_;
};

Interval exp(const Interval& x);
Interval log(const Interval& x);
Interval tanh(const Interval& x);
/// 1 - tanh² x.
Interval sech_squared(const Interval& x);

/// Gives back what MPFR keeps for this thread; at the end of each thread that used it.
struct ThreadCaches {
  ThreadCaches() = default;
  ~ThreadCaches();
  ThreadCaches(const ThreadCaches&) = delete;
  ThreadCaches& operator=(const ThreadCaches&) = delete;
};

}  // namespace ringlab::precise
