// Score modifiers for the oracle of the oracle, written apart from modified.h: distances counted
// from the end of the sequence, a generator of its own.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "reference/core/problem.h"

namespace ringlab::quad {

/// Philox4x32 with ten rounds, from the paper's equations (Salmon et al. 2011, section 3.3).
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> x,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * x[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<std::uint32_t>(second >> 32) ^ x[1] ^ key[0],
         static_cast<std::uint32_t>(second),
         static_cast<std::uint32_t>(first >> 32) ^ x[3] ^ key[1],
         static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9;  // the golden ratio
    key[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  return x;
}

/// The modifiers of one batch element and query head.
template <class Real>
class HeadModifiers {
 public:
  HeadModifiers(const Problem& problem, std::int64_t batch, std::int64_t q_head)
      : modifiers_(problem.modifiers), shape_(problem.shape), batch_(batch), head_(q_head) {}

  Real score(const Real& scaled, std::int64_t query, std::int64_t key) const {
    Real s = scaled;
    if (modifiers_.softcap != 0) s = Real(modifiers_.softcap) * tanh_of(scaled);
    if (modifiers_.alibi_slopes.empty()) return s;
    // Distances are counted from the end, where the last query meets the last key.
    const std::int64_t query_left = shape_.q_tokens - query, key_left = shape_.kv_tokens - key;
    const std::int64_t apart =
        query_left > key_left ? query_left - key_left : key_left - query_left;
    return s - Real(modifiers_.alibi_slopes[static_cast<std::size_t>(head_)]) * Real(apart);
  }

  /// d score / d scaled: 4 / (e^x + e^-x)², which loses nothing where tanh is near one.
  Real steepness(const Real& scaled) const {
    using std::exp;
    if (modifiers_.softcap == 0) return Real(1);
    const Real x = scaled / Real(modifiers_.softcap);
    const Real sum = exp(x) + exp(Real(-x));
    return Real(4) / sum / sum;
  }

  bool has_sink() const { return !modifiers_.sinks.empty(); }
  Real sink() const { return Real(modifiers_.sinks[static_cast<std::size_t>(head_)]); }

  /// The factor that dropout gives a weight before it meets its value.
  Real factor(std::int64_t query, std::int64_t key) const {
    if (modifiers_.dropout == 0) return Real(1);
    const auto word = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
    const std::array<std::uint32_t, 4> random =
        philox({word(key >> 2), word(query), word(head_), word(batch_)},
               {static_cast<std::uint32_t>(modifiers_.dropout_seed),
                static_cast<std::uint32_t>(modifiers_.dropout_seed >> 32)});
    const std::uint32_t below = dropout_threshold(modifiers_.dropout);
    if (random[static_cast<std::size_t>(key & 3)] < below) return Real(0);
    return Real(1) / (Real(1) - Real(modifiers_.dropout));
  }

 private:
  Real tanh_of(const Real& scaled) const {
    using std::tanh;
    return tanh(Real(scaled / Real(modifiers_.softcap)));
  }

  const Modifiers& modifiers_;
  const Shape& shape_;
  std::int64_t batch_, head_;
};

}  // namespace ringlab::quad
