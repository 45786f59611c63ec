// Double-double numbers with an error bound: |middle - true value| <= radius.
//
// Arithmetic is the QD library's, its operations with proven bounds only. With u = 2^-53, without
// overflow and underflow (Joldes, Muller & Popescu 2017; Muller & Rideau 2022):
//   ieee_add         AccurateDWPlusDW   relative error <= 3u² / (1 - 4u)
//   dd * dd, dd * d  DWTimesDW1         relative error <= 5u²
// Each is taken for 8u² = 2^-103 of the result. Underflow adds at most a few 2^-1074 per product,
// taken for 2^-1070; sums never lose anything to it. Radii are doubles themselves: at most seven
// roundings per operation, which the factor 1 + 2^-50 = 1 + 8u outweighs. Quotients, logarithms
// and exponentials are not trusted but bounded from what they leave over (ball.cpp).
// Needs round to nearest and -ffp-contract=off. Where doubles overflow, the radius is inf or NaN.
#pragma once

#include <qd/dd_real.h>

#include <cmath>

namespace ringlab::precise {

class Ball {
 public:
  Ball(double x = 0) : middle_(x) {}  // NOLINT(google-explicit-constructor): numbers are exact
  Ball(const dd_real& middle, double radius) : middle_(middle), radius_(radius) {}
  /// a · b, exact unless it underflows.
  static Ball product(double a, double b) {
    const dd_real p = dd_real::mul(a, b);
    const bool exact = a == 0 || b == 0 || std::abs(p.x[0]) >= 0x1p-960;
    return {p, exact ? 0 : kUnderflowed};
  }

  double high() const { return middle_.x[0]; }
  double low() const { return middle_.x[1]; }
  double radius() const { return radius_; }
  /// An upper bound of the absolute value of every number inside.
  double largest() const { return (std::abs(high()) + radius_) * kOutward; }
  /// The middle, taken for exact.
  Ball exact_middle() const { return {middle_, 0}; }
  Ball widened(double by) const { return {middle_, (radius_ + by) * kOutward}; }
  /// times 2^exponent; nothing may leave the normal range.
  Ball scaled(int exponent) const {
    return {::ldexp(middle_, exponent), std::ldexp(radius_, exponent)};
  }

  friend Ball operator+(const Ball& a, const Ball& b) {
    const dd_real sum = dd_real::ieee_add(a.middle_, b.middle_);
    return {sum, (a.radius_ + b.radius_ + kRounding * std::abs(sum.x[0])) * kOutward};
  }
  friend Ball operator-(const Ball& a) { return {-a.middle_, a.radius_}; }
  friend Ball operator-(const Ball& a, const Ball& b) { return a + (-b); }
  friend Ball operator*(const Ball& a, const Ball& b) {
    if (a.is_zero() || b.is_zero()) return {};
    const dd_real p = a.middle_ * b.middle_;
    const double carried = std::abs(a.high()) * b.radius_ + std::abs(b.high()) * a.radius_;
    return {p, (carried + a.radius_ * b.radius_ + kRounding * std::abs(p.x[0])) * kOutward +
                   kUnderflowed};
  }
  friend Ball operator*(const Ball& a, double b) {
    if (a.is_zero() || b == 0) return {};
    const dd_real p = a.middle_ * b;
    return {p, (std::abs(b) * a.radius_ + kRounding * std::abs(p.x[0])) * kOutward + kUnderflowed};
  }
  friend Ball operator/(const Ball& a, const Ball& b);

  void add_product(const Ball& a, double b) { *this = *this + a * b; }

 private:
  static constexpr double kOutward = 1 + 0x1p-50;
  static constexpr double kRounding = 0x1p-103;
  static constexpr double kUnderflowed = 0x1p-1070;
  bool is_zero() const { return high() == 0 && radius_ == 0; }

  dd_real middle_;
  double radius_ = 0;
};

/// e^x. Below e^-600 it is a ball around zero.
Ball exp(const Ball& x);
/// e^x - 1, to a small relative error also where x is tiny.
Ball expm1(const Ball& x);
/// Natural logarithm; the radius is inf or NaN when x is not surely positive.
Ball log(const Ball& x);
/// tanh x and 1 - tanh² x.
Ball tanh(const Ball& x);
Ball sech_squared(const Ball& x);

}  // namespace ringlab::precise
