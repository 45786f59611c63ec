// The backward pass as a kernel would run it, from the (out, lse) that its forward pass stored:
// D = Σ dO·O, P = exp(s - lse), dS = P (dP - D). Correct, unless a mistake is planted.
#pragma once

#include <cmath>

#include "tests/reference/attention/emulated_kernel.h"

namespace ringlab::testing {

enum class BackwardMistake {
  none,
  scale_missing_in_dk,
  row_term_missing,  ///< dS = P dP
  lse_of_the_next_row,
  dv_from_probability_of_the_next_key,
  soft_capping_not_differentiated,
  dropout_missing_in_dp,
  dropout_missing_in_dv,
};

struct Gradients {
  Tensor<double> dq, dk, dv;
};

template <class Real>
class EmulatedBackward {
 public:
  EmulatedBackward(const AttentionInput& input, const Tensor<double>& dout,
                   const KernelOptions& options, BackwardMistake mistake)
      : input_(input),
        dout_(dout),
        options_(options),
        mistake_(mistake),
        visible_(input.problem.mask, input.problem.shape.q_tokens, input.problem.shape.kv_tokens),
        modified_(input, {options.powers_of_two, options.tanh_from_exp, options.modifier_mistake}),
        forward_(EmulatedKernel<Real>(input, options).run()),
        dq_(input.problem.shape.q()),
        dk_(input.problem.shape.k()),
        dv_(input.problem.shape.v()) {
    scale_ = real(input.problem.scale);
    if (options.prescaled) root_ = std::sqrt(scale_);
  }

  Gradients run() {
    const Shape& shape = input_.problem.shape;
    for_each_index(shape.lse(), [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t) {
      if (!std::isinf(forward_.lse(b, h, i, 0))) run_row(b, h, i);
    });
    return {stored(dq_), stored(dk_), stored(dv_)};
  }

 private:
  void run_row(std::int64_t b, std::int64_t h, std::int64_t i) {
    const Shape& shape = input_.problem.shape;
    const std::int64_t g = h / (shape.q_heads / shape.kv_heads);
    Real mean = 0;
    for (std::int64_t c = 0; c < shape.v_dim; ++c) {
      mean += real(dout_(b, h, i, c)) * real(forward_.out(b, h, i, c));
    }
    if (mistake_ == BackwardMistake::row_term_missing) mean = 0;
    if (begins_part(i, options_.queries_per_store)) {
      for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
        store(dk_, b, g, j);
        store(dv_, b, g, j);
      }
    }
    for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
      if (begins_part(j, options_.keys_per_store)) store(dq_, b, h, i);
      if (!visible_(i, j)) continue;
      const Real dot = product(b, h, g, i, j);
      const Real p = probability(dot, b, h, i, j);
      const Real kept_share = modified_.factor(b, h, i, j);
      Real dp = 0;
      for (std::int64_t c = 0; c < shape.v_dim; ++c) {
        dp += factor(dout_(b, h, i, c)) * factor(input_.v(b, g, j, c));
      }
      if (mistake_ != BackwardMistake::dropout_missing_in_dp) dp *= kept_share;
      const bool flat = mistake_ == BackwardMistake::soft_capping_not_differentiated;
      Real ds = cast(p * (dp - mean) * (flat ? Real(1) : modified_.steepness(dot)));
      if (options_.scaled_slopes) ds *= scale_;
      const Real scale = options_.scaled_slopes ? Real(1) : options_.prescaled ? root_ : scale_;
      const bool unscaled = mistake_ == BackwardMistake::scale_missing_in_dk;
      for (std::int64_t c = 0; c < shape.head_dim; ++c) {
        const Real k = factor(real(input_.k(b, g, j, c)) * root_);
        const Real q = factor(real(input_.q(b, h, i, c)) * root_);
        dq_(b, h, i, c) += factor(ds) * k * scale;
        dk_(b, g, j, c) += factor(ds) * q * (unscaled ? Real(1) : scale);
      }
      const bool next = mistake_ == BackwardMistake::dv_from_probability_of_the_next_key;
      const std::int64_t to = next ? (j + 1) % shape.kv_tokens : j;
      const bool all = mistake_ == BackwardMistake::dropout_missing_in_dv;
      const Real kept = cast(all ? p : kept_share * p);
      for (std::int64_t c = 0; c < shape.v_dim; ++c) {
        dv_(b, g, to, c) += factor(kept) * factor(dout_(b, h, i, c));
      }
    }
  }

  Real product(std::int64_t b, std::int64_t h, std::int64_t g, std::int64_t i,
               std::int64_t j) const {
    Real sum = 0;
    for (std::int64_t c = 0; c < input_.problem.shape.head_dim; ++c) {
      sum +=
          factor(real(input_.q(b, h, i, c)) * root_) * factor(real(input_.k(b, g, j, c)) * root_);
    }
    return sum;
  }

  Real probability(Real sum, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const Shape& shape = input_.problem.shape;
    const bool wrong = mistake_ == BackwardMistake::lse_of_the_next_row;
    const std::int64_t row = wrong ? (i + 1) % shape.q_tokens : i;
    const Real lse = real(forward_.lse(b, h, row, 0));
    const Real scale = options_.prescaled ? Real(1) : scale_;
    const Real log2e = Real(1.4426950408889634);
    if (input_.problem.modifiers.changes_scores()) {
      const Real score = modified_(sum, h, i, j);
      return options_.powers_of_two ? std::exp2(score - lse * log2e) : std::exp(score - lse);
    }
    return options_.powers_of_two ? std::exp2(sum * (scale * log2e) - lse * log2e)
                                  : std::exp(sum * scale - lse);
  }

  static Real real(double x) { return static_cast<Real>(x); }
  Real factor(double x) const { return factor_of(options_, real(x)); }
  Real cast(Real x) const {
    return options_.cast_probabilities ? real(round_to(input_.problem.dtype, x)) : x;
  }
  static bool begins_part(std::int64_t token, std::int64_t per_store) {
    return per_store > 0 && token % per_store == 0;
  }
  void store(Tensor<Real>& sums, std::int64_t b, std::int64_t h, std::int64_t t) const {
    for (std::int64_t c = 0; c < sums.extents().channels; ++c) {
      sums(b, h, t, c) =
          real(round_to(input_.problem.dtype, static_cast<double>(sums(b, h, t, c))));
    }
  }
  Tensor<double> stored(const Tensor<Real>& values) const {
    Tensor<double> result(values.extents());
    for (std::size_t n = 0; n < values.values().size(); ++n) {
      result.values()[n] = round_to(input_.problem.dtype, static_cast<double>(values.values()[n]));
    }
    return result;
  }

  const AttentionInput& input_;
  const Tensor<double>& dout_;
  KernelOptions options_;
  BackwardMistake mistake_;
  Visibility visible_;
  EmulatedScore<Real> modified_;
  AttentionOutput forward_;
  Tensor<Real> dq_, dk_, dv_;
  Real scale_ = 1, root_ = 1;
};

inline Gradients run_emulated_backward(const AttentionInput& input, const Tensor<double>& dout,
                                       const KernelOptions& options,
                                       BackwardMistake mistake = BackwardMistake::none) {
  return input.problem.dtype == DType::f64
             ? EmulatedBackward<double>(input, dout, options, mistake).run()
             : EmulatedBackward<float>(input, dout, options, mistake).run();
}

}  // namespace ringlab::testing
