// The running state of the online softmax: a total monoid.
//
// Source: Milakov & Gimelshein 2018 (online normalizer), FlashAttention (Dao et al. 2022, Alg. 1).
// Why the running triple and not (out, lse): docs/decisions/0001-running-triple.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/core/host_device.h"

namespace ringlab {

/// row_max of an empty row. A constant, because device code cannot call numeric_limits functions.
template <class Real>
inline constexpr Real kEmptyRowMax = -std::numeric_limits<Real>::infinity();

/// Maximum score seen, sum of exp(score - row_max); the accumulator row lives beside it.
/// Identity: row_max = -inf, row_sum = 0, acc = 0.
template <class Real>
struct SoftmaxState {
  Real row_max = kEmptyRowMax<Real>;
  Real row_sum = 0;
};

/// exp(from - to) for from <= to, and 0 for an empty `from`, whatever `to` is: never NaN from
/// (-inf) - (-inf). NaN in, NaN out.
template <class Real>
RINGLAB_HD Real rescale_factor(Real from, Real to) {
  if (from == kEmptyRowMax<Real>) return Real(0);
  return std::exp(from - to);
}

// [answer: merge_state]
/// state += other, with their accumulator rows of `channels` values. Total: empty states on either
/// or both sides, any gap between the maxima. One rounding per product and sum; exact when both
/// factors are powers of two and the sums are representable. Commutative bit for bit (where
/// products and sums are not fused), but for the sign of a zero row_max. NaN on either side gives
/// NaN.
template <class Real>
RINGLAB_HD void merge_state(SoftmaxState<Real>& state, Real* acc, const SoftmaxState<Real>& other,
                            const Real* other_acc, std::int64_t channels) {
  // A NaN maximum wins on either side: an empty row must not make it look empty.
  const bool other_wins = other.row_max > state.row_max || other.row_max != other.row_max;
  const Real top = other_wins ? other.row_max : state.row_max;
  const Real mine = rescale_factor(state.row_max, top);
  const Real theirs = rescale_factor(other.row_max, top);
  state.row_max = top;
  state.row_sum = state.row_sum * mine + other.row_sum * theirs;
  for (std::int64_t c = 0; c < channels; ++c) acc[c] = acc[c] * mine + other_acc[c] * theirs;
}
// end [answer: merge_state]

/// True where no key has been taken in. Scores that are NaN leave row_max as it was, but not row_sum.
template <class Real>
RINGLAB_HD bool is_empty(const SoftmaxState<Real>& state) {
  return state.row_max == kEmptyRowMax<Real> && state.row_sum == 0;
}

// [answer: finish_state]
/// acc -> out in place; returns lse (natural log). An empty row finishes as out = 0, lse = -inf.
template <class Real>
RINGLAB_HD Real finish_state(const SoftmaxState<Real>& state, Real* acc, std::int64_t channels) {
  if (is_empty(state)) {
    for (std::int64_t c = 0; c < channels; ++c) acc[c] = Real(0);
    return kEmptyRowMax<Real>;
  }
  for (std::int64_t c = 0; c < channels; ++c) acc[c] /= state.row_sum;
  return state.row_max + std::log(state.row_sum);
}
// end [answer: finish_state]

}  // namespace ringlab
