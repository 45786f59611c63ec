// Sums over gradients that must come out whatever the input. None of them needs a reference
// implementation of the backward pass.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "property_tests/laws/gradients/backward.h"
#include "property_tests/laws/gradients/directional.h"
#include "property_tests/laws/gradients/gradients.h"

namespace ringlab::verify {
namespace {

/// A K/V head of one batch entry, and the query heads that read it.
struct KvGroup {
  std::int64_t batch = 0, kv_head = 0, first_head = 0, end_head = 0;
  std::string text() const { return fmt::format("batch {}, K/V head {}", batch, kv_head); }
};

LawResult for_each_group(const GradientTrial& trial,
                         const std::function<LawResult(const KvGroup&)>& check) {
  const std::int64_t size = trial.base.group();
  std::vector<LawResult> results;
  for (std::int64_t b = 0; b < trial.shape().batch; ++b) {
    for (std::int64_t g = 0; g < trial.shape().kv_heads; ++g) {
      results.push_back(check({b, g, g * size, (g + 1) * size}));
    }
  }
  return any_held(results);
}

using Factor = std::function<double(std::int64_t head, std::int64_t token, std::int64_t channel)>;

/// A span of heads first … end-1 of one batch entry; add_part() adds Σ factor · gradient over it.
struct HeadSpan {
  const Tensor<double>&got, &allowed, &exact;
  std::int64_t batch, first, end;
};
void add_part(GradientSum& sum, const HeadSpan& part, const Factor& factor) {
  const Extents& e = part.got.extents();
  for (std::int64_t h = part.first; h < part.end; ++h) {
    for (std::int64_t t = 0; t < e.tokens; ++t) {
      for (std::int64_t c = 0; c < e.channels; ++c) {
        sum.add(factor(h, t, c), part.got(part.batch, h, t, c), part.allowed(part.batch, h, t, c),
                part.exact(part.batch, h, t, c));
      }
    }
  }
}

HeadSpan dq_part(const MeasuredGradients& m, const KvGroup& g) {
  return {m.got.dq, m.allowed.dq, m.exact.dq, g.batch, g.first_head, g.end_head};
}
HeadSpan dk_part(const MeasuredGradients& m, const KvGroup& g) {
  return {m.got.dk, m.allowed.dk, m.exact.dk, g.batch, g.kv_head, g.kv_head + 1};
}
HeadSpan dv_part(const MeasuredGradients& m, const KvGroup& g) {
  return {m.got.dv, m.allowed.dv, m.exact.dv, g.batch, g.kv_head, g.kv_head + 1};
}

Factor element_of(const Tensor<double>& x, std::int64_t batch, double sign = 1) {
  return [&x, batch, sign](auto h, auto t, auto c) { return sign * x(batch, h, t, c); };
}

/// Holds because the weights of a row sum to one: dV passes on exactly what dO brings. Finds rows
/// or keys that the pass leaves out, and P computed from a wrong lse.
LawResult sum_of_dv_is_sum_of_dout(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const MeasuredGradients m = measure_gradients(subject, trial);
  const Pairs visible = visible_pairs(trial.base.problem);
  return for_each_group(trial, [&](const KvGroup& g) {
    std::vector<LawResult> results;
    for (std::int64_t channel = 0; channel < c.shape.v_dim; ++channel) {
      GradientSum sum;
      add_part(sum, dv_part(m, g), [&](auto, auto, auto at) { return at == channel ? 1.0 : 0.0; });
      for (std::int64_t h = g.first_head; h < g.end_head; ++h) {
        for (std::int64_t i = 0; i < c.shape.q_tokens; ++i) {
          if (visible.count(i) > 0) sum.add_known(-trial.dout(g.batch, h, i, channel), 0);
        }
      }
      results.push_back(sum.vanishes(g.text() + ", sum of dv minus sum of dout"));
    }
    return any_held(results);
  });
}

/// Holds because one vector added to all keys shifts the scores of a row alike, and changes
/// nothing. Finds a wrong delta, since Σ_j dS_ij = 0 needs it.
LawResult sum_of_dk_is_zero(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const MeasuredGradients m = measure_gradients(subject, trial);
  return for_each_group(trial, [&](const KvGroup& g) {
    std::vector<LawResult> results;
    for (std::int64_t channel = 0; channel < c.shape.head_dim; ++channel) {
      GradientSum sum;
      add_part(sum, dk_part(m, g), [&](auto, auto, auto at) { return at == channel ? 1.0 : 0.0; });
      results.push_back(sum.vanishes(g.text() + ", sum of dk"));
    }
    return any_held(results);
  });
}

/// Holds because scores are bilinear: a factor on q is a factor on k. Finds a scale that one of dq
/// and dk lacks.
LawResult q_dq_is_k_dk(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const MeasuredGradients m = measure_gradients(subject, trial);
  return for_each_group(trial, [&](const KvGroup& g) {
    GradientSum sum;
    add_part(sum, dq_part(m, g), element_of(trial.base.data.q, g.batch));
    add_part(sum, dk_part(m, g), element_of(trial.base.data.k, g.batch, -1));
    return sum.vanishes(g.text() + ", <q, dq> - <k, dk>");
  });
}

/// Holds because O is linear in V: <V, dV> = <O, dO>, with the subject's own O. Finds weights in
/// the backward pass that are not those of the forward pass.
LawResult v_dv_is_o_dout(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const MeasuredGradients m = measure_gradients(subject, trial);
  const AttentionOutput got = attend(subject, trial.base);
  const Judgement truth = judge(subject, trial.base);
  return for_each_group(trial, [&](const KvGroup& g) {
    GradientSum sum;
    add_part(sum, dv_part(m, g), element_of(trial.base.data.v, g.batch));
    add_part(sum, {got.out, truth.allowed.out, truth.exact.out, g.batch, g.first_head, g.end_head},
             element_of(trial.dout, g.batch, -1));
    return sum.vanishes(g.text() + ", <v, dv> - <o, dout>");
  });
}

/// Compares with <dO, J (Δq, Δk, Δv)>, one exact forward derivative from the definition of
/// attention along integer directions. Finds errors that keep all sums above in place.
LawResult gradients_are_the_adjoint(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const MeasuredGradients m = measure_gradients(subject, trial);
  const AttentionTensors delta{random_integers(c.shape.q(), 2, c.seed + 11),
                               random_integers(c.shape.k(), 2, c.seed + 12),
                               random_integers(c.shape.v(), 2, c.seed + 13)};
  return for_each_group(trial, [&](const KvGroup& g) {
    GradientSum sum;
    add_part(sum, dq_part(m, g), element_of(delta.q, g.batch));
    add_part(sum, dk_part(m, g), element_of(delta.k, g.batch));
    add_part(sum, dv_part(m, g), element_of(delta.v, g.batch));
    for (std::int64_t h = g.first_head; h < g.end_head; ++h) {
      const Derivative exact = derivative_along(trial, delta, g.batch, h);
      sum.add_known(-exact.value, exact.error);
    }
    return sum.vanishes(g.text() + ", <gradients, direction> - derivative along it");
  });
}

/// Compares <q, dq> with τ ∂L/∂τ, where τ is the scale: the derivative along q itself. Head by
/// head, so that errors of two heads cannot cancel.
LawResult scale_gradient_is_q_dq(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const MeasuredGradients m = measure_gradients(subject, trial);
  const AttentionTensors along{trial.base.data.q, Tensor<double>(c.shape.k()),
                               Tensor<double>(c.shape.v())};
  return for_each_group(trial, [&](const KvGroup& g) {
    std::vector<LawResult> results;
    for (std::int64_t h = g.first_head; h < g.end_head; ++h) {
      GradientSum sum;
      add_part(sum, {m.got.dq, m.allowed.dq, m.exact.dq, g.batch, h, h + 1},
               element_of(trial.base.data.q, g.batch));
      const Derivative exact = derivative_along(trial, along, g.batch, h);
      sum.add_known(-exact.value, exact.error);
      results.push_back(sum.vanishes(fmt::format("batch {}, head {}, <q, dq>", g.batch, h)));
    }
    return any_held(results);
  });
}

}  // namespace

std::vector<Law> gradient_identity_laws() {
  return {
      {.id = "P40",
       .name = "the_sum_of_dv_is_the_sum_of_dout",
       .statement = "Weights of a row sum to one, in dV too.",
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = sum_of_dv_is_sum_of_dout},
      {.id = "P41",
       .name = "the_sum_of_dk_is_zero",
       .statement = "One vector added to all keys changes no output.",
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = sum_of_dk_is_zero},
      {.id = "P42",
       .name = "q_times_dq_equals_k_times_dk",
       .statement = "A factor on the queries is a factor on the keys.",
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = q_dq_is_k_dk},
      {.id = "P43",
       .name = "v_times_dv_equals_o_times_dout",
       .statement = "The output is linear in the values.",
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = v_dv_is_o_dout},
      {.id = "P44",
       .name = "gradients_are_the_adjoint_of_the_derivative",
       .statement = "<dO, J(dq, dk, dv)> equals the derivative of <dO, O> along the direction.",
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = gradients_are_the_adjoint},
      {.id = "P50",
       .name = "q_times_dq_is_the_gradient_of_the_scale",
       .statement = "The scale times its gradient is <q, dq>, head by head.",
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = scale_gradient_is_q_dq},
  };
}

}  // namespace ringlab::verify
