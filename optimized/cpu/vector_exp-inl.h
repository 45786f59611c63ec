// exp of vectors, for arguments that are at most 0. Included once per target.
#if defined(RINGLAB_CPU_VECTOR_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_VECTOR_EXP_INL_H_
#undef RINGLAB_CPU_VECTOR_EXP_INL_H_
#else
#define RINGLAB_CPU_VECTOR_EXP_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Of floats: x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 is in two parts, the first with 9 trailing
/// zero bits, so that n times it is exact (Cody & Waite 1980); a polynomial of degree 6 in r; times
/// 2^n by adding n to the exponent's bits. n comes about by adding 1.5 · 2^23, where floats are
/// whole numbers: then it is in the lowest bits, too.
template <class D>
HWY_INLINE hn::Vec<D> exp_of_floats(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto whole = hn::Set(d, 0x1.8p23f);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), whole);
  const auto n = hn::Sub(shifted, whole);
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440054690583e-4f), r);
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0f)));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const auto y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::Add(y, hn::Sub(x, x));  // the exponent of NaN is anybody's guess
}

/// exp(x) for x <= 0: floats within 2 ulp, doubles within 1 (Highway's). Results below the normal
/// range are 0, exp(0) is exactly 1, NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp_of_negative(D d, hn::Vec<D> x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33654f)), exp_of_floats(d, x));
  } else {
    return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
  }
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
