// The random words behind dropout for many queries at a time. Included once per target.
#if defined(RINGLAB_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_PHILOX_INL_H_
#undef RINGLAB_CPU_PHILOX_INL_H_
#else
#define RINGLAB_CPU_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "optimized/cpu/modifiers/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Words that are made at a time.
HWY_INLINE std::int64_t word_lanes() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<std::uint32_t>()));
}

#if HWY_TARGET == HWY_SCALAR
/// words (4, count): those of counter {call.keys, queries[i], call.head, call.batch} in column i.
/// count is a multiple of word_lanes().
inline void fill_words(const PhiloxCall& call, const std::uint32_t* queries, std::int64_t count,
                       std::uint32_t* words) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Philox::Words four =
        random_words({call.keys, queries[i], call.head, call.batch}, call.seed);
    for (std::int64_t w = 0; w < 4; ++w) words[w * count + i] = four[static_cast<std::size_t>(w)];
  }
}
#else
/// Counters in lanes of 64 bits, of which the lower halves count: products need the room.
using WideWord = hn::Vec<hn::ScalableTag<std::uint64_t> >;
struct WideCounter {
  WideWord word[4];
};

HWY_INLINE WideWord wide(std::uint32_t word) {
  return hn::Set(hn::ScalableTag<std::uint64_t>(), word);
}

HWY_INLINE WideWord product(WideWord word, WideWord factor) {
  const hn::ScalableTag<std::uint32_t> d;
  return hn::MulEven(hn::BitCast(d, word), hn::BitCast(d, factor));
}

HWY_INLINE WideCounter scrambled(WideCounter c, std::uint64_t seed) {
  const auto first_factor = wide(Philox::kMultipliers[0]);
  const auto second_factor = wide(Philox::kMultipliers[1]);
  auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < Philox::kRounds; ++round) {
    const WideWord first = product(c.word[0], first_factor);
    const WideWord second = product(c.word[2], second_factor);
    c = {{hn::Xor(hn::Xor(hn::ShiftRight<32>(second), c.word[1]), wide(low)), second,
          hn::Xor(hn::Xor(hn::ShiftRight<32>(first), c.word[3]), wide(high)), first}};
    low += Philox::kIncrements[0];
    high += Philox::kIncrements[1];
  }
  return c;
}

/// words (4, count): those of counter {call.keys, queries[i], call.head, call.batch} in column i.
/// count is a multiple of word_lanes(); both aligned. Even and odd queries go apart.
HWY_NOINLINE inline void fill_words(const PhiloxCall& call, const std::uint32_t* queries,
                                    std::int64_t count, std::uint32_t* words) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::ScalableTag<std::uint64_t> wide_d;
  for (std::int64_t i = 0; i < count; i += word_lanes()) {
    const WideWord pairs = hn::BitCast(wide_d, hn::Load(d, queries + i));
    const auto words_of = [&](WideWord query) HWY_ATTR {
      return scrambled({{wide(call.keys), query, wide(call.head), wide(call.batch)}}, call.seed);
    };
    const WideCounter even = words_of(pairs), odd = words_of(hn::ShiftRight<32>(pairs));
    for (int w = 0; w < 4; ++w) {
      const auto both =
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd.word[w])), hn::BitCast(d, even.word[w]));
      hn::Store(both, d, words + w * count + i);
    }
  }
}
#endif

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
