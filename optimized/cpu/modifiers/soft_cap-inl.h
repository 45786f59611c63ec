// Soft-capping of scores. Included once per target.
#if defined(RINGLAB_CPU_SOFT_CAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_SOFT_CAP_INL_H_
#undef RINGLAB_CPU_SOFT_CAP_INL_H_
#else
#define RINGLAB_CPU_SOFT_CAP_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A cap in the base of the scores, and 1 / cap.
template <class Real>
struct SoftCap {
  Real cap, inverse;
};

/// scores -> cap · tanh(scores / cap) in place; `count` numbers, aligned, a multiple of the lanes.
/// tanh is within 4 ulp. Infinities become the cap, NaN stays NaN. `slopes`, if not null, become
/// 1 - tanh², within half an ulp of 1 for the tanh that was computed.
template <class Real>
HWY_NOINLINE void soft_cap(const SoftCap<Real>& by, std::int64_t count, Real* HWY_RESTRICT scores,
                           Real* HWY_RESTRICT slopes) {
  const hn::ScalableTag<Real> d;
  const auto cap = hn::Set(d, by.cap), inverse = hn::Set(d, by.inverse), one = hn::Set(d, Real(1));
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += n) {
    const auto t = hn::Tanh(d, hn::Mul(hn::Load(d, scores + i), inverse));
    hn::Store(hn::Mul(t, cap), d, scores + i);
    if (slopes) hn::Store(hn::NegMulAdd(t, t, one), d, slopes + i);
  }
}

/// changes -> changes · slopes in place; a change of 0 stays 0, whatever its slope.
template <class Real>
HWY_NOINLINE void flatten(const Real* HWY_RESTRICT slopes, std::int64_t count,
                          Real* HWY_RESTRICT changes) {
  const hn::ScalableTag<Real> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += n) {
    const auto change = hn::Load(d, changes + i);
    const auto flat = hn::Mul(change, hn::Load(d, slopes + i));
    hn::Store(hn::IfThenZeroElse(hn::Eq(change, hn::Zero(d)), flat), d, changes + i);
  }
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
