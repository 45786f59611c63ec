#include "property_tests/laws/gradients/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

bool all_below(const Tensor<double>& exact, const Tensor<double>& allowed) {
  for (std::size_t i = 0; i < exact.values().size(); ++i) {
    if (std::abs(exact.values()[i]) > allowed.values()[i]) return false;
  }
  return true;
}

bool gradients_keep_bits(const Subject& subject) {
  return subject.can.has(Ability::deterministic) &&
         subject.can.has(Ability::deterministic_gradients);
}

BackwardTolerance of_both_runs(const BackwardTolerance& once) {
  return {added(once.dq, once.dq), added(once.dk, once.dk), added(once.dv, once.dv)};
}

LawResult named(const std::string& what, LawResult result) {
  if (result.outcome == Outcome::broken) result.message = what + ": " + result.message;
  return result;
}

}  // namespace

AttentionInput GradientTrial::input() const {
  AttentionInput input = base.input();
  input.dout = dout.view();
  return input;
}

GradientTrial make_gradient_trial(const Case& c) { return {make_trial(c), make_dout(c)}; }

RunResult run_both_passes(const Subject& subject, const AttentionInput& input,
                          const RunOptions& options) {
  RunResult result = run_checked(subject, input, options);
  const Shape& s = input.problem.shape;
  const bool fits = result.gradients && result.gradients->dq.extents() == s.q() &&
                    result.gradients->dk.extents() == s.k() &&
                    result.gradients->dv.extents() == s.v();
  if (!fits) {
    throw_environment_error({.where = subject.name + ", gradients",
                             .expected = "dq, dk and dv in the extents of q, k and v",
                             .actual = result.gradients ? "other extents" : "none"});
  }
  return result;
}

AttentionGradients differentiate(const Subject& subject, const GradientTrial& trial) {
  return std::move(*run_both_passes(subject, trial.input(), trial.base.options).gradients);
}

MeasuredGradients measure_gradients(const Subject& subject, const GradientTrial& trial) {
  return measure_gradients(subject, trial, trial.input());
}

MeasuredGradients measure_gradients(const Subject& subject, const GradientTrial& trial,
                                    const AttentionInput& input) {
  RunResult run = run_both_passes(subject, input, trial.base.options);
  MeasuredGradients measured{
      std::move(*run.gradients), exact_backward(input, *input.dout), {}, std::move(run.output)};
  measured.allowed = backward_tolerance(input, *input.dout, measured.exact,
                                        subject.profile(trial.base.problem, trial.base.options));
  return measured;
}

bool zero_gradients_would_pass(const GradientTrial& trial, const MeasuredGradients& m) {
  if (trial.base.problem.mask.count_all() == 0) return false;
  return all_below(m.exact.dq, m.allowed.dq) && all_below(m.exact.dk, m.allowed.dk) &&
         all_below(m.exact.dv, m.allowed.dv);
}

LawResult equal_exact(const MeasuredGradients& m) {
  return both(matches("dq", m.got.dq, m.exact.dq, m.allowed.dq),
              both(matches("dk", m.got.dk, m.exact.dk, m.allowed.dk),
                   matches("dv", m.got.dv, m.exact.dv, m.allowed.dv)));
}

LawResult same_gradients(const std::string& what, const MeasuredGradients& got,
                         const MeasuredGradients& want) {
  return named(
      what,
      both(agrees("dq", got.got.dq, want.got.dq, added(got.allowed.dq, want.allowed.dq)),
           both(agrees("dk", got.got.dk, want.got.dk, added(got.allowed.dk, want.allowed.dk)),
                agrees("dv", got.got.dv, want.got.dv, added(got.allowed.dv, want.allowed.dv)))));
}

LawResult same_gradient_bits(const std::string& what, const AttentionGradients& got,
                             const AttentionGradients& want,
                             const std::optional<BackwardTolerance>& allowed) {
  return named(what,
               all_held({same_at("dq", got.dq, want.dq, {}, allowed ? &allowed->dq : nullptr),
                         same_at("dk", got.dk, want.dk, {}, allowed ? &allowed->dk : nullptr),
                         same_at("dv", got.dv, want.dv, {}, allowed ? &allowed->dv : nullptr)}));
}

std::optional<BackwardTolerance> allowed_between_runs(const Subject& subject,
                                                      const GradientTrial& trial) {
  if (gradients_keep_bits(subject)) return std::nullopt;
  return of_both_runs(measure_gradients(subject, trial).allowed);
}

std::optional<BackwardTolerance> allowed_beside(const Subject& subject, const GradientTrial& trial,
                                                double value) {
  if (gradients_keep_bits(subject) && keeps_bits_beside(subject, value)) return std::nullopt;
  return of_both_runs(measure_gradients(subject, trial).allowed);
}

void GradientSum::add(double factor, double got, double allowed, double exact) {
  const long double size = std::abs(factor);
  sum_ += static_cast<long double>(factor) * got;
  magnitude_ += size * std::abs(got);
  if (size > 0) allowed_ += size * allowed;  // 0 times an infinite tolerance
  largest_ = std::max(largest_, size * std::abs(exact));
}

void GradientSum::add_known(long double value, long double error) {
  sum_ += value;
  magnitude_ += std::abs(value);
  allowed_ += error;
}

LawResult GradientSum::vanishes(const std::string& name) const {
  // The products and sums above: fewer than 2^13 terms with 64 bits each.
  const long double allowed = allowed_ * (1 + 0x1p-40L) + magnitude_ * 0x1p-50L;
  if (!(std::abs(sum_) <= allowed)) {
    return broken(fmt::format("{}: off by {:.6g}, allowed {:.6g}", name, static_cast<double>(sum_),
                              static_cast<double>(allowed)));
  }
  if (largest_ <= allowed) return unbounded("gradients of zeros would pass");
  LawResult result = held(static_cast<double>(std::abs(sum_) / allowed));
  result.bounds = {.measured = 1, .telling = 1};
  return result;
}

LawResult any_held(const std::vector<LawResult>& results) {
  LawResult all = discarded("there is no gradient to look at");
  BoundCounts bounds;
  for (const LawResult& result : results) {
    bounds.add(result.bounds);
    if (result.outcome == Outcome::broken) return result;
    if (result.outcome == Outcome::discarded) continue;
    if (all.outcome == Outcome::discarded || result.ratio > all.ratio) all = result;
  }
  all.bounds = bounds;
  return all;
}

}  // namespace ringlab::verify
