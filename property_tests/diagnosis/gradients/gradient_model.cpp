#include "property_tests/diagnosis/gradients/gradient_model.h"

#include <cmath>
#include <limits>

namespace ringlab::verify {
namespace {

/// Room for a correct kernel's error in one term of a sum, as a multiple of the first order.
constexpr double kRoom = 8;

double value_at(const GradientModel& m, std::int64_t b, std::int64_t h, std::int64_t i,
                std::int64_t j, std::int64_t c) {
  const std::int64_t row = m.forward.value_read[m.forward.pair(i, j)];
  return m.forward.trial.data.v(b, h / m.forward.trial.group(), row, c);
}

double key_at(const GradientModel& m, std::int64_t b, std::int64_t h, std::int64_t i,
              std::int64_t j, std::int64_t c) {
  const std::int64_t row = m.forward.key_read[m.forward.pair(i, j)];
  return m.forward.trial.data.k(b, h / m.forward.trial.group(), row, c);
}

/// Σ_c |dO_c x_c| for the two factors of dS, and their error relative to that.
struct TermSizes {
  double difference = 0, relative_error = 0;
};

TermSizes term_sizes(const GradientModel& m, std::int64_t b, std::int64_t h, std::int64_t i,
                     std::int64_t j) {
  const NumericsProfile& profile = m.forward.profile;
  const Shape& shape = m.forward.shape();
  TermSizes sizes;
  double products = 0;
  for (std::int64_t c = 0; c < shape.v_dim; ++c) {
    const double upstream = std::abs(m.dout(b, h, i, c));
    sizes.difference += upstream * (m.factor(b, h, i, j) * std::abs(value_at(m, b, h, i, j, c)) +
                                    std::abs(m.out(b, h, i, c)));
  }
  for (std::int64_t c = 0; c < shape.head_dim; ++c) {
    products += std::abs(m.forward.trial.data.q(b, h, i, c) * key_at(m, b, h, i, j, c));
  }
  products *= std::abs(m.forward.trial.problem.scale);
  const double u = std::max(profile.u_accumulate, profile.u_work);
  const auto terms = static_cast<double>(shape.head_dim + shape.v_dim + shape.q_tokens +
                                         shape.kv_tokens + 2 * profile.max_rescales + 8);
  const double score = std::abs(m.forward.score(b, h, i, j)) + std::abs(m.lse(b, h, i, 0));
  const auto stores =
      static_cast<double>(std::max(profile.key_gradient_stores, profile.query_gradient_stores));
  sizes.relative_error = u * terms * (1 + products + score) + 4 * profile.exp_error +
                         profile.u_probability + profile.u_query * products +
                         2 * profile.u_product * (2 + products) + profile.u_wire * (1 + products) +
                         profile.u_lse * score +
                         stores * dtype_info(profile.out_dtype).unit_roundoff;
  return sizes;
}

std::int64_t home_of(const GradientModel& m, std::int64_t i, std::int64_t j) {
  if (m.added_to.empty()) return j;
  return m.added_to[static_cast<std::size_t>(j * m.forward.trial.options.ranks +
                                             m.forward.rank_of_query(i))];
}

/// Widens the tolerances to infinity wherever this pair takes part.
void forget_pair(const GradientModel& m, std::int64_t b, std::int64_t h, std::int64_t i,
                 std::int64_t j, GradientPrediction& made) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const std::int64_t g = h / m.forward.trial.group();
  for (std::int64_t c = 0; c < m.forward.shape().v_dim; ++c) made.allowed.dv(b, g, j, c) = kAny;
  for (std::int64_t c = 0; c < m.forward.shape().head_dim; ++c) {
    made.allowed.dq(b, h, i, c) = made.allowed.dk(b, g, j, c) = kAny;
  }
}

/// Widens the tolerances of dK and dV of a rank's chunk to infinity.
void forget_chunk(const GradientModel& m, std::int64_t b, std::int64_t g, int rank,
                  GradientPrediction& made) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  for (std::int64_t j = 0; j < m.forward.shape().kv_tokens; ++j) {
    if (m.forward.rank_of_key(j) != rank) continue;
    for (std::int64_t c = 0; c < m.forward.shape().v_dim; ++c) made.allowed.dv(b, g, j, c) = kAny;
    for (std::int64_t c = 0; c < m.forward.shape().head_dim; ++c) {
      made.allowed.dk(b, g, j, c) = kAny;
    }
  }
}

}  // namespace

void weigh_again(GradientModel& m) {
  const double cap = m.forward.trial.problem.modifiers.softcap;
  for_each_pair(m.forward, [&](auto b, auto h, auto i, auto j) {
    const bool seen = m.forward.in_sum(b, h, i, j) != 0;
    m.p(b, h, i, j) = seen ? std::exp(m.forward.score(b, h, i, j) - m.lse(b, h, i, 0)) : 0;
    double dot = 0;
    for (std::int64_t c = 0; c < m.forward.shape().v_dim; ++c) {
      dot += m.dout(b, h, i, c) * value_at(m, b, h, i, j, c);
    }
    m.dp(b, h, i, j) = dot;
    const double slope = cap == 0 ? 0 : std::tanh(scaled_product(m.forward, b, h, i, j) / cap);
    m.steepness(b, h, i, j) = 1 - slope * slope;
  });
}

double element_at(const GradientModel& m, RowsOf rows, std::int64_t b, std::int64_t h,
                  std::int64_t i, std::int64_t j, std::int64_t c) {
  const Shape& shape = m.forward.shape();
  const bool is_value = rows == RowsOf::v || rows == RowsOf::out || rows == RowsOf::dout;
  if (c >= (is_value ? shape.v_dim : shape.head_dim)) return std::nan("");
  switch (rows) {
    case RowsOf::q:
      return m.forward.trial.data.q(b, h, i, c);
    case RowsOf::k:
      return key_at(m, b, h, i, j, c);
    case RowsOf::v:
      return value_at(m, b, h, i, j, c);
    case RowsOf::out:
      return m.out(b, h, i, c);
    case RowsOf::dout:
      return m.dout(b, h, i, c);
  }
  return std::nan("");
}

GradientModel make_gradient_model(const Scene& scene, const Tensor<double>& dout) {
  const ExactForward exact = exact_forward(scene.trial.input());
  const Extents pairs = scene.right.score.extents();
  const double scale = scene.trial.problem.scale;
  GradientModel m{.forward = scene.right,
                  .dout = dout,
                  .out = exact.out,
                  .lse = exact.lse,
                  .p = Tensor<double>(pairs),
                  .factor = Tensor<double>(pairs),
                  .dp = Tensor<double>(pairs),
                  .delta = Tensor<double>(exact.lse.extents()),
                  .steepness = Tensor<double>(pairs),
                  .p_of_dv = {},
                  .ds_of_dq = {},
                  .ds_of_dk = {},
                  .scale_of_dq = scale,
                  .scale_of_dk = scale};
  m.factor = mapped(m.factor, [&](double, auto b, auto h, auto i, auto j) {
    const double sum = m.forward.in_sum(b, h, i, j);
    return sum == 0 ? 1 : m.forward.in_acc(b, h, i, j) / sum;
  });
  for_each_index(exact.out.extents(), [&](auto b, auto h, auto i, auto c) {
    m.delta(b, h, i, 0) += dout(b, h, i, c) * exact.out(b, h, i, c);
  });
  weigh_again(m);
  return m;
}

void differentiate(GradientModel& m) {
  m.p_of_dv = m.ds_of_dq = m.p;
  for_each_pair(m.forward, [&](auto b, auto h, auto i, auto j) {
    const double f = m.factor(b, h, i, j);
    m.p_of_dv(b, h, i, j) *= f;
    m.ds_of_dq(b, h, i, j) *=
        (f * m.dp(b, h, i, j) - m.delta(b, h, i, 0)) * m.steepness(b, h, i, j);
  });
  m.ds_of_dk = m.ds_of_dq;
}

GradientPrediction sum_up(const GradientModel& m) {
  const Trial& trial = m.forward.trial;
  const Shape& shape = trial.shape();
  const DType dtype = m.forward.profile.out_dtype;
  GradientPrediction made{
      {Tensor<double>(shape.q()), Tensor<double>(shape.k()), Tensor<double>(shape.v())},
      {Tensor<double>(shape.q()), Tensor<double>(shape.k()), Tensor<double>(shape.v())}};
  for_each_pair(m.forward, [&](auto b, auto h, auto i, auto j) {
    const double p = m.p_of_dv(b, h, i, j), dq = m.ds_of_dq(b, h, i, j),
                 dk = m.ds_of_dk(b, h, i, j), weight = std::abs(m.p(b, h, i, j));
    if (!std::isfinite(weight)) return forget_pair(m, b, h, i, j, made);
    if (p == 0 && dq == 0 && dk == 0 && weight == 0) return;
    const std::int64_t g = h / trial.group(), home = home_of(m, i, j);
    if (home < 0) forget_chunk(m, b, g, m.forward.rank_of_query(i), made);
    const double none = m.forward.profile.exp_underflow + 4 * m.forward.profile.product_underflow;
    const TermSizes sizes = term_sizes(m, b, h, i, j);
    const double error = kRoom * sizes.relative_error;
    const double size = (weight * sizes.difference + std::abs(dq) + std::abs(dk)) * error +
                        none * (1 + sizes.difference);
    for (std::int64_t c = 0; home >= 0 && c < shape.v_dim; ++c) {
      const double row = m.scale_of_dv * element_at(m, m.rows_of_dv, b, h, i, j, c);
      made.gradients.dv(b, g, home, c) += p * row;
      made.allowed.dv(b, g, home, c) += ((std::abs(p) + weight) * error + none) * std::abs(row);
    }
    for (std::int64_t c = 0; c < shape.head_dim; ++c) {
      const double k = element_at(m, m.rows_of_dq, b, h, i, j, c),
                   q = element_at(m, m.rows_of_dk, b, h, i, j, c);
      made.gradients.dq(b, h, i, c) += m.scale_of_dq * dq * k;
      made.allowed.dq(b, h, i, c) += std::abs(m.scale_of_dq * k) * size;
      if (home < 0) continue;
      made.gradients.dk(b, g, home, c) += m.scale_of_dk * dk * q;
      made.allowed.dk(b, g, home, c) += std::abs(m.scale_of_dk * q) * size;
    }
  });
  const auto finish = [&](const Tensor<double>& value, Tensor<double>& allowed) {
    for (std::size_t n = 0; n < allowed.values().size(); ++n) {
      if (std::isnan(value.values()[n])) allowed.values()[n] = HUGE_VAL;
      allowed.values()[n] += half_ulp(dtype, std::abs(value.values()[n]) + allowed.values()[n]);
    }
  };
  finish(made.gradients.dq, made.allowed.dq);
  finish(made.gradients.dk, made.allowed.dk);
  finish(made.gradients.dv, made.allowed.dv);
  return made;
}

}  // namespace ringlab::verify
