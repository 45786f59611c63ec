// Scores and their modifiers as hardware would compute them, in float or double; correct, unless a
// mistake is planted.
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/attention/modified.h"
#include "reference/core/run.h"

namespace ringlab::testing {

enum class ModifierMistake {
  none,
  cap_after_bias,         ///< ALiBi before soft-capping
  bias_of_the_other_end,  ///< queries and keys aligned at the top left
  cap_off_by_one_percent,
  sink_with_every_tile,
  sink_outside_the_lse,
  dropout_in_row_sum,
  dropout_unscaled,  ///< without 1 / (1 - p)
  dropout_of_the_next_key,
};

/// Scores of one problem, in nats or, where powers of two are used, in bits.
template <class Real>
class EmulatedScore {
 public:
  struct Options {
    bool powers_of_two = false;
    bool tanh_from_exp = false;  ///< 1 - 2 / (e^{2x} + 1): right to an absolute error only
    ModifierMistake mistake = ModifierMistake::none;
  };

  EmulatedScore(const AttentionInput& input, const Options& options)
      : input_(input), options_(options), dropout_(input.problem.modifiers) {
    unit_ = options.powers_of_two ? Real(1.4426950408889634) : Real(1);
    scale_ = static_cast<Real>(input.problem.scale);
    cap_ = static_cast<Real>(modifiers().softcap);
    if (options.mistake == ModifierMistake::cap_off_by_one_percent) cap_ *= Real(1.01);
    keep_ = static_cast<Real>(dropout_factor(modifiers().dropout));
  }

  /// `dot` is q·k.
  Real operator()(Real dot, std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (options_.mistake == ModifierMistake::cap_after_bias) {
      const Real biased = dot * scale_ - bias(head, query, key, Real(1));
      return cap_ > 0 ? (cap_ * unit_) * tanh(biased / cap_) : biased * unit_;
    }
    const Real capped = cap_ > 0 ? (cap_ * unit_) * tanh_of(dot) : dot * (scale_ * unit_);
    return capped - bias(head, query, key, unit_);
  }

  /// Derivative of the score with respect to scale · q·k.
  Real steepness(Real dot) const {
    if (cap_ == 0) return Real(1);
    const Real t = tanh_of(dot);
    return Real(1) - t * t;
  }

  bool has_sink() const { return !modifiers().sinks.empty(); }
  Real sink(std::int64_t head) const {
    return static_cast<Real>(modifiers().sinks[static_cast<std::size_t>(head)]) * unit_;
  }

  Real factor(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (modifiers().dropout == 0) return Real(1);
    const bool next = options_.mistake == ModifierMistake::dropout_of_the_next_key;
    if (!dropout_.keeps(batch, head, query, next ? key + 1 : key)) return Real(0);
    return options_.mistake == ModifierMistake::dropout_unscaled ? Real(1) : keep_;
  }

 private:
  const Modifiers& modifiers() const { return input_.problem.modifiers; }

  Real tanh_of(Real dot) const {
    return options_.powers_of_two ? tanh(dot * (scale_ / cap_)) : tanh(dot * scale_ / cap_);
  }

  Real tanh(Real x) const {
    return options_.tanh_from_exp ? Real(1) - Real(2) / (std::exp(Real(2) * x) + Real(1))
                                  : std::tanh(x);
  }

  Real bias(std::int64_t head, std::int64_t query, std::int64_t key, Real unit) const {
    if (modifiers().alibi_slopes.empty()) return Real(0);
    const Shape& shape = input_.problem.shape;
    const bool top_left = options_.mistake == ModifierMistake::bias_of_the_other_end;
    const std::int64_t offset = top_left ? 0 : shape.kv_tokens - shape.q_tokens;
    const Real slope = static_cast<Real>(modifiers().alibi_slopes[static_cast<std::size_t>(head)]);
    return (slope * unit) * std::abs(static_cast<Real>(query + offset - key));
  }

  const AttentionInput& input_;
  Options options_;
  Dropout dropout_;
  Real unit_ = 1, scale_ = 1, cap_ = 0, keep_ = 1;
};

}  // namespace ringlab::testing
