// Elements in the type that kernels compute in, a vector at a time. Included once per target.
#if defined(RINGLAB_CPU_WIDEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_WIDEN_INL_H_
#undef RINGLAB_CPU_WIDEN_INL_H_
#else
#define RINGLAB_CPU_WIDEN_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "reference/core/small_float.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Loads one vector's worth of elements, exactly.
template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const BFloat16* from) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::RebindToUnsigned<D> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}
template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const Half* from) {
#if HWY_TARGET == \
    HWY_SCALAR  // without instructions for it, Highway's conversion takes NaN for a number
  return hn::Set(d, static_cast<float>(*from));
#else
  const hn::Rebind<hwy::float16_t, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(from)));
#endif
}
template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const hn::TFromD<D>* from) {
  return hn::LoadU(d, from);
}

/// Widens `count` elements into `to`; returns whether all of them are finite.
template <class Element, class Real>
HWY_INLINE bool widen_all(const Element* from, std::int64_t count, Real* HWY_RESTRICT to) {
  const hn::ScalableTag<Real> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  auto spoiled = zero;  // 0 times a finite number is 0
  std::int64_t i = 0;
  for (; i + n <= count; i += n) {
    const auto value = load_wide(d, from + i);
    spoiled = hn::MulAdd(value, zero, spoiled);
    hn::StoreU(value, d, to + i);
  }
  bool finite = hn::AllTrue(d, hn::Eq(spoiled, zero));
  for (; i < count; ++i) {
    to[i] = static_cast<Real>(from[i]);
    finite = finite && to[i] * Real(0) == Real(0);
  }
  return finite;
}

/// True when `count` numbers are all finite.
template <class Real>
HWY_INLINE bool all_finite(const Real* values, std::int64_t count) {
  const hn::ScalableTag<Real> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  auto spoiled = zero;
  std::int64_t i = 0;
  for (; i + n <= count; i += n) spoiled = hn::MulAdd(hn::LoadU(d, values + i), zero, spoiled);
  bool finite = hn::AllTrue(d, hn::Eq(spoiled, zero));
  for (; i < count; ++i) finite = finite && values[i] * Real(0) == Real(0);
  return finite;
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
