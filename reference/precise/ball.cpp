#include "reference/precise/ball.h"

#include <array>
#include <limits>

namespace ringlab::precise {
namespace {

constexpr double kHuge = std::numeric_limits<double>::infinity();
constexpr int kDegree = 10;  // of the series of e^t - 1
constexpr int kDoublings = 8;

/// 2^-107 is twice half an ulp of the low part.
const Ball& natural_log_of_2() {
  static const Ball ln2(dd_real(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56), 0x1p-107);
  return ln2;
}

const std::array<Ball, kDegree + 1>& inverse_factorials() {
  static const auto table = [] {
    std::array<Ball, kDegree + 1> inverse;
    inverse[0] = Ball(1);
    for (int k = 1; k <= kDegree; ++k) {
      const auto n = static_cast<std::size_t>(k);
      inverse[n] = inverse[n - 1] / Ball(k);
    }
    return inverse;
  }();
  return table;
}

/// e^r - 1 for |r| <= 0.36. With t = r / 2^8, |t| < 2^-9, the series stops after t^10 / 10!, and
/// what is left out is below 1.01 |t| t^10 / 11! < |t| 2^-114. Then 8 times
/// e^{2t} - 1 = 2 (e^t - 1) + (e^t - 1)².
Ball short_expm1(const Ball& r) {
  // |e^r - 1 - r| <= r²; dividing by 2^8 could underflow.
  if (r.largest() < 0x1p-200)
    return r.high() == 0 ? r : r.widened(0x1p-200 * r.largest() + 0x1p-1070);
  const Ball t = r.scaled(-kDoublings);
  const auto& inverse = inverse_factorials();
  Ball sum = inverse[kDegree];
  for (std::size_t k = kDegree - 1; k >= 1; --k) sum = sum * t + inverse[k];
  Ball value = (sum * t).widened(t.largest() * 0x1p-114);
  for (int i = 0; i < kDoublings; ++i) value = value.scaled(1) + value * value;
  return value;
}

/// e^x for every x in the ball: e^{middle} (e^{±radius} - 1), and e^r - 1 <= r (1 + r) for r <= 1.
Ball with_radius_of(const Ball& x, const Ball& of_middle) {
  const double r = x.radius();
  if (r == 0) return of_middle;
  if (!(r <= 1)) return of_middle.widened(kHuge);
  return of_middle.widened(of_middle.largest() * r * (1 + r) + 0x1p-1070);
}

Ball exp_of_exact(const Ball& x) {
  const double whole = std::nearbyint(x.high() / 0.6931471805599453);
  const Ball r = x - natural_log_of_2() * whole;
  const Ball value = with_radius_of(r, Ball(1) + short_expm1(r.exact_middle()));
  return value.scaled(static_cast<int>(whole));
}

}  // namespace

Ball operator/(const Ball& a, const Ball& b) {
  if (a.is_zero() && std::abs(b.high()) > b.radius()) return {};
  // Whatever q is: x/y - q = (x - qy)/y, and the numerator is computed.
  const Ball q(dd_real::accurate_div(a.middle_, b.middle_), 0);
  const double left_over = (a - q * b).largest();
  const double least = std::abs(b.high()) * (1 - 0x1p-50) - b.radius();
  if (!(least > 0)) return q.widened(kHuge);
  return q.widened(left_over / least + Ball::kUnderflowed);
}

Ball exp(const Ball& x) {
  // e^-599 < 2^-860.
  if (x.high() < -600) return Ball(0).widened(x.radius() <= 1 ? 0x1p-860 : kHuge);
  if (!(x.high() <= 700)) return x.widened(kHuge);
  return with_radius_of(x, exp_of_exact(x.exact_middle()));
}

Ball expm1(const Ball& x) {
  if (!(std::abs(x.high()) <= 0.34)) return exp(x) - Ball(1);
  // Derivative e^x <= 1.5 over a ball of radius 0.01 at most.
  if (!(x.radius() <= 0.01)) return x.widened(kHuge);
  return short_expm1(x.exact_middle()).widened(1.5 * x.radius());
}

Ball log(const Ball& x) {
  if (!(x.high() > 0) || !std::isfinite(x.high())) return x.widened(kHuge);
  // With y near log x and 1 + d = x e^-y: log x = y + log(1 + d), |log(1 + d) - d| <= d² for
  // |d| <= 1/2. Once to come near, once more for the value and its bound.
  Ball y(std::log(x.high()));
  y = (y + (x.exact_middle() * exp(-y) - Ball(1))).exact_middle();
  const Ball d = x * exp(-y) - Ball(1);
  if (!(d.largest() <= 0.5)) return y.widened(kHuge);
  return (y + d).widened(d.largest() * d.largest());
}

Ball tanh(const Ball& x) {
  const bool negative = x.high() < 0;
  const Ball e = expm1((negative ? x : -x).scaled(1));  // e^{-2|x|} - 1
  const Ball size = -e / (Ball(2) + e);
  return negative ? -size : size;
}

Ball sech_squared(const Ball& x) {
  const Ball e = exp((x.high() < 0 ? x : -x).scaled(1));
  const Ball sum = Ball(1) + e;
  return e.scaled(2) / (sum * sum);
}

}  // namespace ringlab::precise
