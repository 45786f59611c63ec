// A block kernel as hardware would run it: inputs of a dtype, arithmetic in float (double for f64),
// online softmax over tiles of keys. Correct, unless a mistake is planted.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/attention/visible.h"
#include "reference/core/numerics.h"
#include "reference/core/run.h"
#include "tests/reference/attention/emulated_score.h"

namespace ringlab::testing {

enum class Mistake {
  none,
  scale_off_by_1e_4,
  log2e_truncated,
  no_rescale,
  first_key_dropped,
  row_sum_in_bf16,
  maximum_forgotten_in_lse,
};

struct KernelOptions {
  std::int64_t tile = 4;
  bool powers_of_two = false;       ///< exp2, with log2 e folded into the scale
  bool cast_probabilities = false;  ///< to the input dtype, before P·V
  bool prescaled = false;           ///< q and k times the root of the scale, before they meet
  bool scaled_slopes = false;       ///< backward: dS times the scale, before it meets q and k
  bool round_factors = false;       ///< of all matrix products, to the 11 bits of TF32
  bool flush_to_zero = false;       ///< exp results below the normal range become zero
  bool tanh_from_exp = false;       ///< with an absolute error
  bool sink_last = false;           ///< merged after the keys, not before them
  std::int64_t queries_per_store =
      0;                            ///< dk and dv go to memory in the input dtype; 0: when complete
  std::int64_t keys_per_store = 0;  ///< the same of dq
  Mistake mistake = Mistake::none;
  ModifierMistake modifier_mistake = ModifierMistake::none;
};

/// A number as a matrix product reads it: rounded to 11 bits, with the exponents of a float, if the
/// kernel does that.
template <class Real>
Real factor_of(const KernelOptions& options, Real x) {
  if (!options.round_factors || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), -126);
  return std::ldexp(std::rint(std::ldexp(x, 10 - exponent)), exponent - 10);
}

/// Real is float, or double for f64 inputs.
template <class Real>
class EmulatedKernel {
 public:
  EmulatedKernel(const AttentionInput& input, const KernelOptions& options)
      : input_(input),
        options_(options),
        visible_(input.problem.mask, input.problem.shape.q_tokens, input.problem.shape.kv_tokens),
        modified_(input, {options.powers_of_two, options.tanh_from_exp, options.modifier_mistake}) {
    Real scale = static_cast<Real>(input.problem.scale);
    if (options.mistake == Mistake::scale_off_by_1e_4) scale *= Real(1.0001);
    const Real log2e =
        options.mistake == Mistake::log2e_truncated ? Real(1.4427) : Real(1.4426950408889634);
    if (options.prescaled) {
      root_ = std::sqrt(scale);
      scale = 1;
    }
    factor_ = options.powers_of_two ? scale * log2e : scale;
  }

  AttentionOutput run() {
    const Shape& shape = input_.problem.shape;
    AttentionOutput output{Tensor<double>(shape.out()), Tensor<double>(shape.lse())};
    for_each_index(shape.lse(), [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t) {
      run_row(b, h, i, output);
    });
    return output;
  }

 private:
  struct State {
    Real row_max = -std::numeric_limits<Real>::infinity();
    Real row_sum = 0;
    std::vector<Real> acc;
  };

  void run_row(std::int64_t b, std::int64_t h, std::int64_t i, AttentionOutput& output) {
    const Shape& shape = input_.problem.shape;
    kv_head_ = h / (shape.q_heads / shape.kv_heads);
    State state;
    state.acc.assign(static_cast<std::size_t>(shape.v_dim), Real(0));
    if (!options_.sink_last) add_sink(h, state);
    for (std::int64_t begin = 0; begin < shape.kv_tokens; begin += options_.tile) {
      std::vector<std::int64_t> keys;
      for (std::int64_t j = begin; j < std::min(begin + options_.tile, shape.kv_tokens); ++j) {
        if (visible_(i, j)) keys.push_back(j);
      }
      if (options_.mistake == Mistake::first_key_dropped && begin == 0 && !keys.empty()) {
        keys.erase(keys.begin());
      }
      if (!keys.empty()) add_tile(b, h, i, keys, state);
      if (mistaken(ModifierMistake::sink_with_every_tile)) add_sink(h, state);
    }
    if (mistaken(ModifierMistake::sink_outside_the_lse)) {
      write_row(b, h, i, state, output);
      const double lse = output.lse(b, h, i, 0);
      add_sink(h, state);
      write_row(b, h, i, state, output);
      output.lse(b, h, i, 0) = lse;
      return;
    }
    if (options_.sink_last) add_sink(h, state);
    write_row(b, h, i, state, output);
  }

  bool mistaken(ModifierMistake mistake) const { return options_.modifier_mistake == mistake; }

  /// The state (sink, 1, 0), merged.
  void add_sink(std::int64_t h, State& state) const {
    if (!modified_.has_sink()) return;
    const Real sink = modified_.sink(h);
    rescale(state, std::max(state.row_max, sink));
    state.row_sum += exponential(sink - state.row_max);
  }

  void write_row(std::int64_t b, std::int64_t h, std::int64_t i, const State& state,
                 AttentionOutput& output) const {
    const Shape& shape = input_.problem.shape;
    const bool empty = state.row_max == -std::numeric_limits<Real>::infinity();
    for (std::int64_t c = 0; c < shape.v_dim; ++c) {
      const Real out = empty ? Real(0) : state.acc[static_cast<std::size_t>(c)] / state.row_sum;
      output.out(b, h, i, c) = round_to(input_.problem.dtype, static_cast<double>(out));
    }
    output.lse(b, h, i, 0) = static_cast<double>(empty ? state.row_max : lse(state));
  }

  Real lse(const State& state) const {
    const Real in_nats = options_.powers_of_two ? Real(0.6931471805599453) : Real(1);
    const Real row_max =
        options_.mistake == Mistake::maximum_forgotten_in_lse ? Real(0) : state.row_max * in_nats;
    return row_max + std::log(state.row_sum);
  }

  void add_tile(std::int64_t b, std::int64_t h, std::int64_t i,
                const std::vector<std::int64_t>& keys, State& state) {
    std::vector<Real> scores;
    for (const std::int64_t j : keys) {
      Real sum = 0;
      for (std::int64_t c = 0; c < input_.problem.shape.head_dim; ++c) {
        sum += factor_of(options_, static_cast<Real>(input_.q(b, h, i, c)) * root_) *
               factor_of(options_, static_cast<Real>(input_.k(b, kv_head_, j, c)) * root_);
      }
      scores.push_back(input_.problem.modifiers.changes_scores() ? modified_(sum, h, i, j)
                                                                 : sum * factor_);
    }
    const Real top = std::max(state.row_max, *std::max_element(scores.begin(), scores.end()));
    rescale(state, top);
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const Real p = exponential(scores[n] - top);
      const Real kept = p * modified_.factor(b, h, i, keys[n]);
      const Real cast = options_.cast_probabilities
                            ? static_cast<Real>(round_to(input_.problem.dtype, kept))
                            : kept;
      const bool too_early = mistaken(ModifierMistake::dropout_in_row_sum);
      state.row_sum = stored_sum(state.row_sum + (too_early ? kept : p));
      for (std::size_t c = 0; c < state.acc.size(); ++c) {
        const double v = input_.v(b, kv_head_, keys[n], static_cast<std::int64_t>(c));
        state.acc[c] += factor_of(options_, cast) * factor_of(options_, static_cast<Real>(v));
      }
    }
  }

  void rescale(State& state, Real top) const {
    const bool first = state.row_max == -std::numeric_limits<Real>::infinity();
    const Real factor = first ? Real(0) : exponential(state.row_max - top);
    state.row_max = top;
    if (options_.mistake == Mistake::no_rescale) return;
    state.row_sum = stored_sum(state.row_sum * factor);
    for (Real& a : state.acc) a *= factor;
  }

  Real exponential(Real x) const {
    const Real e = options_.powers_of_two ? std::exp2(x) : std::exp(x);
    return options_.flush_to_zero && e < std::numeric_limits<Real>::min() ? Real(0) : e;
  }

  Real stored_sum(Real sum) const {
    return options_.mistake == Mistake::row_sum_in_bf16
               ? static_cast<Real>(round_to(DType::bf16, static_cast<double>(sum)))
               : sum;
  }

  const AttentionInput& input_;
  KernelOptions options_;
  Visibility visible_;
  EmulatedScore<Real> modified_;
  Real factor_ = 0, root_ = 1;
  std::int64_t kv_head_ = 0;
};

inline AttentionOutput run_emulated_kernel(const AttentionInput& input,
                                           const KernelOptions& options) {
  return input.problem.dtype == DType::f64 ? EmulatedKernel<double>(input, options).run()
                                           : EmulatedKernel<float>(input, options).run();
}

/// What that kernel promises.
inline NumericsProfile emulated_profile(const Problem& problem, const KernelOptions& options) {
  const std::int64_t tiles = (problem.shape.kv_tokens + options.tile - 1) / options.tile;
  NumericsProfile profile = carried_profile(problem.dtype, tiles);
  if (options.cast_probabilities) {
    const DTypeInfo& info = dtype_info(problem.dtype);
    profile.u_probability = info.unit_roundoff;
    profile.p_underflow = info.min_subnormal / 2;
  }
  if (options.prescaled) profile.u_query = 3 * profile.u_accumulate;
  if (options.round_factors) profile.u_product = 0x1p-11;
  const Shape& shape = problem.shape;
  profile.key_gradient_stores = stores_before_the_last(shape.q_tokens, options.queries_per_store,
                                                       shape.q_heads / shape.kv_heads);
  profile.query_gradient_stores =
      stores_before_the_last(shape.kv_tokens, options.keys_per_store, 1);
  if (options.tanh_from_exp) {
    // Two roundings of the exponent, which tanh flattens, exp, sum, quotient, difference.
    profile.tanh_floor = 3 * profile.exp_error + 4 * profile.u_work;
  }
  return profile;
}

}  // namespace ringlab::testing
