#include "tests/verifier_mistakes/bound_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/laws/gradients/gradients.h"
#include "reference/attention/exact.h"

namespace ringlab::verify {
namespace {

constexpr double kU = 0x1p-12;

double gamma(std::int64_t terms) {
  const double sum = static_cast<double>(terms) * kU;
  return sum / (1 - sum);
}

/// Softmax, its gradient and the magnitudes of all sums, by their definitions, without a mask.
class Magnitudes {
 public:
  Tensor<double> out, dq, dk, dv;

  explicit Magnitudes(const GradientTrial& trial)
      : out(trial.shape().out()),
        dq(trial.shape().q()),
        dk(trial.shape().k()),
        dv(trial.shape().v()),
        trial_(trial) {
    const Shape& s = trial.shape();
    for_each_index({s.batch, s.q_heads, s.q_tokens, 1},
                   [&](auto b, auto h, auto i, auto) { add_row(b, h, i); });
  }

 private:
  void add_row(std::int64_t b, std::int64_t h, std::int64_t i) {
    const Shape& s = trial_.shape();
    std::vector<double> weight, slope;
    double sum = 0, mean = 0;
    for (std::int64_t j = 0; j < s.kv_tokens; ++j) {
      weight.push_back(std::exp(score(trial_.base, b, h, i, j)));
      sum += weight.back();
    }
    for (std::int64_t j = 0; j < s.kv_tokens; ++j) {
      weight[index(j)] /= sum;
      double dot = 0;
      for (std::int64_t c = 0; c < s.v_dim; ++c) {
        dot += trial_.dout(b, h, i, c) * trial_.base.data.v(b, kv(h), j, c);
      }
      slope.push_back(dot);
      mean += weight[index(j)] * dot;
    }
    for (std::int64_t j = 0; j < s.kv_tokens; ++j) {
      add_pair({b, h, i, j}, weight[index(j)],
               std::abs(trial_.base.problem.scale * weight[index(j)] * (slope[index(j)] - mean)));
    }
  }

  struct Pair {
    std::int64_t b, h, i, j;
  };
  void add_pair(const Pair& at, double weight, double score_gradient) {
    const AttentionTensors& data = trial_.base.data;
    const Shape& s = trial_.shape();
    for (std::int64_t c = 0; c < s.v_dim; ++c) {
      out(at.b, at.h, at.i, c) += weight * std::abs(data.v(at.b, kv(at.h), at.j, c));
      dv(at.b, kv(at.h), at.j, c) += weight * std::abs(trial_.dout(at.b, at.h, at.i, c));
    }
    for (std::int64_t c = 0; c < s.head_dim; ++c) {
      dq(at.b, at.h, at.i, c) += score_gradient * std::abs(data.k(at.b, kv(at.h), at.j, c));
      dk(at.b, kv(at.h), at.j, c) += score_gradient * std::abs(data.q(at.b, at.h, at.i, c));
    }
  }

  std::int64_t kv(std::int64_t q_head) const { return q_head / trial_.base.group(); }
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  const GradientTrial& trial_;
};

std::string too_narrow(const char* name, const Tensor<double>& allowed,
                       const Tensor<double>& magnitude, double least) {
  for (std::size_t n = 0; n < allowed.values().size(); ++n) {
    const double needed = least * magnitude.values()[n] * (1 - 1e-9);
    if (allowed.values()[n] >= needed) continue;
    return fmt::format("{}[{}]: {} is allowed, its sum alone may lose {}", name, n,
                       allowed.values()[n], needed);
  }
  return "";
}

}  // namespace

std::string bounds_cover_every_sum() {
  Case c;
  c.shape = {.batch = 2,
             .q_heads = 4,
             .kv_heads = 2,
             .q_tokens = 17,
             .kv_tokens = 19,
             .head_dim = 5,
             .v_dim = 3};
  c.dtype = DType::f64;
  const GradientTrial trial = make_gradient_trial(c);
  const AttentionInput input = trial.input();
  NumericsProfile profile = carried_profile(DType::f64, 1);
  profile.u_accumulate = kU;
  const ExactForward forward = exact_forward(input);
  const ExactBackward backward = exact_backward(input, *input.dout);
  const ForwardTolerance out = forward_tolerance(input, forward, profile);
  const BackwardTolerance allowed = backward_tolerance(input, *input.dout, backward, profile);
  const Magnitudes sums(trial);
  const std::int64_t group = trial.base.group();
  for (const std::string& complaint :
       {too_narrow("o", out.out, sums.out, gamma(c.shape.kv_tokens)),
        too_narrow("dq", allowed.dq, sums.dq, gamma(c.shape.kv_tokens)),
        too_narrow("dk", allowed.dk, sums.dk, gamma(c.shape.q_tokens * group)),
        too_narrow("dv", allowed.dv, sums.dv, gamma(c.shape.q_tokens * group))}) {
    if (!complaint.empty()) return complaint;
  }
  return "";
}

std::string the_oracle_promises_what_it_can_keep() {
  Case c;
  c.shape = {.batch = 1,
             .q_heads = 1,
             .kv_heads = 1,
             .q_tokens = 3,
             .kv_tokens = 1,
             .head_dim = 4,
             .v_dim = 3};
  c.dtype = DType::f64;
  Trial trial = make_trial(c);
  trial.data.q = scaled(trial.data.q, 0);
  const ExactForward exact = exact_forward(trial.input());
  constexpr double kUnit = 0x1p-53, kRounded = 1 + 1e-9;
  for (std::size_t n = 0; n < exact.out.values().size(); ++n) {
    const double units = exact.out_error.values()[n] / (kUnit * std::abs(exact.out.values()[n]));
    if (!(units >= 1 && units <= 8 * kRounded)) return fmt::format("o is known to {} u", units);
  }
  for (const double error : exact.lse_error.values()) {
    if (!(error <= 3 * kUnit * kRounded)) return fmt::format("lse is known to {}", error);
  }
  return "";
}

std::string errors_are_those_of_their_own_head() {
  Case c;
  c.shape = {.batch = 2,
             .q_heads = 4,
             .kv_heads = 2,
             .q_tokens = 9,
             .kv_tokens = 11,
             .head_dim = 5,
             .v_dim = 3};
  c.dtype = DType::f64;
  Trial trial = make_trial(c);
  trial.data.q = mapped(trial.data.q, [](double x, auto b, auto h, auto, auto) {
    return b + h == 0 ? 0 : x * std::ldexp(1, static_cast<int>(4 * b + h));
  });
  const ExactForward fast = fast_forward(trial.input());
  std::string complaint;
  for_each_index(c.shape.lse(), [&](auto b, auto h, auto i, auto) {
    double largest = 0;
    for (std::int64_t j = 0; j < c.shape.kv_tokens; ++j) {
      largest = std::max(largest, std::abs(score(trial, b, h, i, j)));
    }
    if (fast.lse_error(b, h, i, 0) >= 0x1p-53 * largest) return;
    complaint = fmt::format("lse({}, {}, {}) is known to {}, with scores of {}", b, h, i,
                            fast.lse_error(b, h, i, 0), largest);
  });
  return complaint;
}

}  // namespace ringlab::verify
