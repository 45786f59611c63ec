// Inputs whose gradients are known in closed form.
#include <algorithm>
#include <cmath>

#include "property_tests/laws/gradients/backward.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

Case plain_tokens(Case c) { return with_tokens(plain_values(std::move(c))); }

LawResult near(const MeasuredGradients& m, const AttentionGradients& want) {
  return both(matches("dq", m.got.dq, want.dq, m.allowed.dq),
              both(matches("dk", m.got.dk, want.dk, m.allowed.dk),
                   matches("dv", m.got.dv, want.dv, m.allowed.dv)));
}

AttentionGradients zeros(const Shape& s) {
  return {Tensor<double>(s.q()), Tensor<double>(s.k()), Tensor<double>(s.v())};
}

/// Makes all keys alike: dq_i is then the row sum of dS times that key: 0, though its terms are
/// not. Finds delta computed from a rounded output, or left out.
LawResult rows_of_score_gradients_sum_to_zero(const Subject& subject, const Case& c) {
  GradientTrial trial = make_gradient_trial(c);
  const Tensor<double> key =
      random_integers({c.shape.batch, c.shape.kv_heads, 1, c.shape.head_dim}, 3, c.seed + 3);
  trial.base.data.k = mapped(trial.base.data.k, [&](double, auto b, auto h, auto, auto ch) {
    return key(b, h, 0, ch) == 0 ? 1.0 : key(b, h, 0, ch);
  });
  const MeasuredGradients m = measure_gradients(subject, trial);
  LawResult result = matches("dq", m.got.dq, zeros(c.shape).dq, m.allowed.dq);
  if (result.outcome == Outcome::broken) return result;
  // The least that one term of the sum is: dO · O, times the scale and a key of 1 or more.
  const ExactForward forward = exact_forward(trial.base.input());
  bool clear = false;
  for_each_index(c.shape.lse(), [&](auto b, auto h, auto i, auto) {
    double mean = 0;
    for (std::int64_t ch = 0; ch < c.shape.v_dim; ++ch) {
      mean += trial.dout(b, h, i, ch) * forward.out(b, h, i, ch);
    }
    clear |= std::abs(trial.base.problem.scale * mean) > m.allowed.dq(b, h, i, 0);
  });
  if (!clear) return unbounded("the terms of the sum are below the tolerance");
  ++result.bounds.telling;  // 0 is the answer, and its terms would show
  return result;
}

Case diagonal(Case c) {
  c = plain_tokens(std::move(c));
  c.shape.q_tokens = c.shape.kv_tokens;
  c.mask = "window:0,0";
  return c;
}

/// Lets every row see one key: its weight is 1 whatever its score, and only dv sees anything.
/// Finds dS that is computed as P (dP - delta) with a delta of other rounding than dP.
LawResult single_keys(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  AttentionGradients want = zeros(c.shape);
  for_each_index(c.shape.out(), [&](auto b, auto h, auto i, auto ch) {
    want.dv(b, h / trial.base.group(), i, ch) += trial.dout(b, h, i, ch);
  });
  return near(measure_gradients(subject, trial), want);
}

/// Gradients where q = 0 or k = 0, in closed form: all weights of a row are 1/n.
class UniformRows {
 public:
  explicit UniformRows(const GradientTrial& trial)
      : trial_(trial), visible_(visible_pairs(trial.base.problem)), want_(zeros(trial.shape())) {}

  AttentionGradients gradients() {
    const Shape& s = trial_.shape();
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.q_heads; ++h) {
        for (std::int64_t i = 0; i < s.q_tokens; ++i) add_row(b, h, i);
      }
    }
    return std::move(want_);
  }

 private:
  void add_row(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t count = visible_.count(i), g = h / trial_.base.group();
    if (count == 0) return;
    const auto n = static_cast<double>(count);
    std::vector<double> dp(static_cast<std::size_t>(visible_.keys));
    double mean = 0;
    for (std::int64_t j = 0; j < visible_.keys; ++j) {
      if (!visible_(i, j)) continue;
      double& product = dp[static_cast<std::size_t>(j)];
      for (std::int64_t c = 0; c < trial_.shape().v_dim; ++c) {
        product += trial_.dout(b, h, i, c) * trial_.base.data.v(b, g, j, c);
        want_.dv(b, g, j, c) += trial_.dout(b, h, i, c) / n;
      }
      mean += product;
    }
    for (std::int64_t j = 0; j < visible_.keys; ++j) {
      if (!visible_(i, j)) continue;
      // (n dp - sum) is an integer and exact: only the division rounds.
      const double ds =
          trial_.base.problem.scale * (n * dp[static_cast<std::size_t>(j)] - mean) / (n * n);
      for (std::int64_t c = 0; c < trial_.shape().head_dim; ++c) {
        want_.dq(b, h, i, c) += ds * trial_.base.data.k(b, g, j, c);
        want_.dk(b, g, j, c) += ds * trial_.base.data.q(b, h, i, c);
      }
    }
  }

  const GradientTrial& trial_;
  Pairs visible_;
  AttentionGradients want_;
};

/// Finds a scale that is missing or applied twice: nothing else remains in these gradients.
LawResult uniform_weights(const Subject& subject, const Case& c) {
  GradientTrial trial = make_gradient_trial(c);
  Tensor<double>& flat = c.seed % 2 ? trial.base.data.q : trial.base.data.k;
  for (double& x : flat.values()) x = 0;
  const MeasuredGradients m = measure_gradients(subject, trial);
  if (zero_gradients_would_pass(trial, m)) return unbounded("gradients of zeros would pass");
  return near(m, UniformRows(trial).gradients());
}

/// The case in a type narrower than f64: sums of the closed form are rounded in double themselves.
Case uniform_case(Case c) {
  c = plain_tokens(std::move(c));
  if (c.dtype == DType::f64) c.dtype = DType::f32;
  return c;
}

std::string needs_narrow_dtype(const Subject& subject) {
  const auto& dtypes = subject.can.dtypes;
  const bool f32 = std::find(dtypes.begin(), dtypes.end(), DType::f32) != dtypes.end();
  return f32 ? "" : "it does not compute in f32";
}

}  // namespace

std::vector<Law> gradient_probe_laws() {
  return {
      {.id = "P45",
       .name = "rows_of_score_gradients_sum_to_zero",
       .statement =
           "With all keys alike dq is 0: what the scores gain in one key they lose in the others.",
       .shape_case = plain_tokens,
       .needs = {Ability::backward},
       .check = rows_of_score_gradients_sum_to_zero},
      {.id = "P52",
       .name = "a_row_with_one_key_has_no_gradient_but_in_v",
       .statement = "Rows that see one key each: dq = dk = 0 and dv = dout.",
       .shape_case = diagonal,
       .needs = {Ability::backward},
       .check = single_keys},
      {.id = "P53",
       .name = "uniform_weights_have_closed_form_gradients",
       .statement =
           "q = 0 or k = 0: every weight is 1/n, and all gradients are sums of integers over n^2.",
       .shape_case = uniform_case,
       .needs = {Ability::backward},
       .not_applicable = needs_narrow_dtype,
       .check = uniform_weights},
  };
}

}  // namespace ringlab::verify
