// 2^x of vectors, for arguments that are at most 0. Included once per target.
#if defined(RINGLAB_CPU_VECTOR_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_VECTOR_EXP2_INL_H_
#undef RINGLAB_CPU_VECTOR_EXP2_INL_H_
#else
#define RINGLAB_CPU_VECTOR_EXP2_INL_H_
#endif

#include <hwy/highway.h>

#include <iterator>

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The constants of a type: 2^r for |r| <= 1/2 as 1 + c_1 r + … (the polynomials with the least
/// largest relative error among those with 2^0 = 1: 0.77 and 0.08 units of the last place), least
/// exponent, and the number that moves whole numbers to the lowest bits when added, as the exponent
/// of twice a power. That number is even: halves are rounded as without it.
template <class Real>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float kCoefficients[] = {0x1.5bba14p-10f, 0x1.3cea88p-7f, 0x1.c6b752p-5f,
                                            0x1.ebf9bcp-3f,  0x1.62e42ap-1f, 1.0f};
  static constexpr float kLeast = -126;
  static constexpr float kWhole = 0x1.8p23f + 128;
  static constexpr int kMantissaBits = 23;
};
template <>
struct ExpConstants<double> {
  static constexpr double kCoefficients[] = {
      0x1.c0638527edf34p-32, 0x1.e605f979c7a5dp-28, 0x1.b54167a0b9061p-24, 0x1.62bfd49ed0adfp-20,
      0x1.ffcbee3b0af8cp-17, 0x1.4309130961163p-13, 0x1.5d87fe7bbbe07p-10, 0x1.3b2ab6fba1e1cp-7,
      0x1.c6b08d7048f31p-5,  0x1.ebfbdff82c598p-3,  0x1.62e42fefa39f3p-1,  1.0};
  static constexpr double kLeast = -1022;
  static constexpr double kWhole = 0x1.8p52 + 1024;
  static constexpr int kMantissaBits = 52;
};

#if HWY_TARGET <= HWY_AVX3
/// p · 2^n where x is a number no less than `least` or no number at all, else 0; n is x rounded.
HWY_INLINE __m512 times_power(__m512 p, __m512 n, __m512 x, __m512 least) {
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), p, n);
}
HWY_INLINE __m512d times_power(__m512d p, __m512d n, __m512d x, __m512d least) {
  return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, least, _CMP_NLT_UQ), p, n);
}
#endif

/// Keeps a constant in a register: compilers would rather read it again for every vector.
template <class V>
HWY_INLINE V held(V constant) {
#if HWY_ARCH_X86
  asm("" : "+v"(constant.raw));
#endif
  return constant;
}

/// Vectors that are worth raising together: as many as there are registers for beside the
/// constants.
template <class Real>
inline constexpr int kPowersAtOnce = HWY_TARGET <= HWY_AVX3 && sizeof(Real) == 4 ? 4 : 2;

/// 2^x for x up to about 1; relative error at most 1.75 units of 2^-23 (2^-52 for doubles). Results
/// below the normal range are 0, 2^0 is exactly 1, NaN stays NaN. The same bits on AVX2,
/// AVX-512 and NEON.
template <class D>
class Exp2 {
 public:
  using V = hn::Vec<D>;

  HWY_INLINE explicit Exp2(D d) : least_(held(hn::Set(d, Constants::kLeast))) {
    const Real unit = HWY_TARGET <= HWY_AVX3 ? 1 : Real(0.5);
    for (int k = 0; k < kTerms; ++k)
      held_[k] = held(hn::Set(d, unit * Constants::kCoefficients[k]));
  }
  HWY_INLINE V operator()(V x) const {
    V all[1] = {x};
    raise(all);
    return all[0];
  }
  /// Raises several x to 2^x, with the same bits as one alone. Each step is taken for all vectors
  /// in turn: a processor does not look far enough ahead to find the next vector's steps by itself.
  template <int kCount>
  HWY_INLINE void raise(V (&x)[kCount]) const {
#if HWY_TARGET <= HWY_AVX3
    V n[kCount], r[kCount], p[kCount];
    for (int i = 0; i < kCount; ++i) n[i] = hn::Round(x[i]);
    for (int i = 0; i < kCount; ++i) r[i] = hn::Sub(x[i], n[i]);
    for (int i = 0; i < kCount; ++i) p[i] = held_[0];
    for (int k = 1; k < kTerms; ++k) {
      for (int i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], r[i], held_[k]);
    }
    for (int i = 0; i < kCount; ++i) {
      x[i] = V{times_power(p[i].raw, n[i].raw, x[i].raw, least_.raw)};
    }
#else
    for (V& each : x) each = power(each);
#endif
  }

 private:
#if HWY_TARGET > HWY_AVX3
  HWY_INLINE V power(V x) const {
    const D d;
    const auto whole = hn::Set(d, Constants::kWhole);
    const auto shifted = hn::Add(x, whole);
    const auto n = hn::Sub(shifted, whole);
    const auto r = hn::Sub(x, n);
    auto p = held_[0];
    for (int k = 1; k < kTerms; ++k) p = hn::MulAdd(p, r, held_[k]);
    // p is half of 2^r here, and the factor is twice 2^n; where x is NaN, p is NaN, too.
    const hn::RebindToSigned<D> di;
    const auto twice = hn::ShiftLeft<Constants::kMantissaBits>(hn::BitCast(di, shifted));
    return hn::IfThenZeroElse(hn::Lt(x, least_), hn::Mul(p, hn::BitCast(d, twice)));
  }
#endif

  using Real = hn::TFromD<D>;
  using Constants = ExpConstants<Real>;
  static constexpr int kTerms = static_cast<int>(std::size(Constants::kCoefficients));
  V least_, held_[kTerms];
};

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
