// 2^x for vectors of doubles. Included once per target.
#if defined(RINGLAB_ATTENTION_FAST_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_ATTENTION_FAST_POWER_INL_H_
#undef RINGLAB_ATTENTION_FAST_POWER_INL_H_
#else
#define RINGLAB_ATTENTION_FAST_POWER_INL_H_
#endif

#include <hwy/highway.h>

#include "reference/attention/fast_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::fast::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Vector = hn::Vec<Doubles>;

/// (2^r - 1) / r interpolated in the 11 Chebyshev nodes of [-1/2, 1/2], highest power first; with
/// it 2^r = 1 + r · (…) has the relative error 2.0e-17 before rounding, and 2^0 is 1.
inline constexpr double kPowerSeries[] = {
    0x1.e9d3fe3952179p-32, 0x1.e6063f7217bc6p-28, 0x1.b524fae627834p-24, 0x1.62bfd47773353p-20,
    0x1.ffcbfc670dcd4p-17, 0x1.430913096fd9fp-13, 0x1.5d87fe78a5276p-10, 0x1.3b2ab6fba1ddap-7,
    0x1.c6b08d704a0c2p-5,  0x1.ebfbdff82c598p-3,  0x1.62e42fefa39efp-1};

/// x = n + r with n whole, 2^r from the series, n added to its exponent. 0 below kLeastPower, at
/// -inf and for NaN.
HWY_INLINE Vector power_of_two(Vector x) {
  const Doubles d;
  const hn::RebindToSigned<Doubles> whole;
  const Vector round = hn::Set(d, 0x1.8p52);  // leaves n in the low bits of the sum
  const Vector shifted = hn::Add(x, round);
  const Vector r = hn::Sub(x, hn::Sub(shifted, round));
  // Even and odd powers of r apart, so that multiply-adds wait for half as many others.
  const Vector square = hn::Mul(r, r);
  Vector even = hn::Set(d, kPowerSeries[0]), odd = hn::Set(d, kPowerSeries[1]);
  for (int i = 2; i < 11; i += 2) even = hn::MulAdd(even, square, hn::Set(d, kPowerSeries[i]));
  for (int i = 3; i < 11; i += 2) odd = hn::MulAdd(odd, square, hn::Set(d, kPowerSeries[i]));
  const Vector p = hn::MulAdd(hn::MulAdd(odd, r, even), r, hn::Set(d, 1.0));
  const auto exponent = hn::ShiftLeft<52>(hn::BitCast(whole, shifted));
  const Vector power = hn::BitCast(d, hn::Add(hn::BitCast(whole, p), exponent));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, kLeastPower)), power);
}

}  // namespace ringlab::fast::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
