#include "property_tests/laws/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ringlab::verify {
namespace {

constexpr const char* kOtherRun = "other run";

// A broken part breaks the whole, a discarded one discards it, and of two that
// held the tighter one is told.
LawResult decisive(LawResult first, LawResult second) {
  if (first.outcome == Outcome::broken) return first;
  if (second.outcome == Outcome::broken) return second;
  if (first.outcome == Outcome::discarded) return first;
  if (second.outcome == Outcome::discarded) return second;
  return second.ratio > first.ratio ? second : first;
}

}  // namespace

LawResult held(double ratio) { return {Outcome::held, ratio, ""}; }
LawResult broken(std::string message) { return {Outcome::broken, 0, std::move(message)}; }
LawResult discarded(std::string reason) { return {Outcome::discarded, 0, std::move(reason)}; }

LawResult unbounded(std::string reason) {
  LawResult result = discarded(std::move(reason));
  result.bounds = {.measured = 1, .telling = 0, .unbounded = 1};
  return result;
}

LawResult compared(const Report& report) {
  LawResult result = !report.passed() ? broken(report.summary())
                     : report.held()  ? held(report.worst_ratio())
                                      : discarded("its bounds are so wide that zeros would pass");
  const TensorReport* worst = nullptr;
  for (const TensorReport& tensor : report.tensors) {
    result.bounds.add({tensor.measured, tensor.telling, tensor.unbounded, tensor.infinite});
    // Tensors that decide count: the ones that failed where one failed, else all.
    const bool counts = tensor.compared > 0 && tensor.passed() == report.passed();
    if (counts && (!worst || tensor.worst.ratio > worst->worst.ratio)) worst = &tensor;
  }
  if (!worst) return result;
  const WorstElement& at = worst->worst;
  result.worst = Element{worst->tensor, at.batch, at.head, at.token, at.channel};
  return result;
}

LawResult both(LawResult first, LawResult second) {
  BoundCounts bounds = first.bounds;
  bounds.add(second.bounds);
  LawResult result = decisive(std::move(first), std::move(second));
  result.bounds = bounds;
  return result;
}

LawResult matches(std::string name, const Tensor<double>& got, const Tensor<double>& expected,
                  const Tensor<double>& allowed) {
  // A declared roundoff near 1 makes a bound of infinity times zero.
  const Tensor<double> promised = mapped(allowed, [](double bound, auto...) {
    return std::isnan(bound) ? std::numeric_limits<double>::infinity() : bound;
  });
  Report report;
  report.tensors.push_back(compare(std::move(name), got.view(), expected.view(), promised.view()));
  return compared(report);
}

LawResult agrees(std::string name, const Tensor<double>& got, const Tensor<double>& other_run,
                 const Tensor<double>& allowed) {
  Report report;
  report.tensors.push_back(compare(std::move(name), got.view(), other_run.view(), allowed.view()));
  report.tensors.back().against = kOtherRun;  // in reports: not the truth, only another run
  return compared(report);
}

LawResult same_bits(std::string name, const Tensor<double>& got, const Tensor<double>& expected) {
  if (!(got.extents() == expected.extents())) return broken(name + ": the shapes differ");
  LawResult result = held();
  for_each_index(got.extents(), [&](auto b, auto h, auto t, auto c) {
    const double found = got(b, h, t, c);
    const double wanted = expected(b, h, t, c);
    if (found == wanted || result.outcome == Outcome::broken) return;  // NaN is a difference
    result = broken(fmt::format("{}({}, {}, {}, {}): got {}, {} {}, allowed 0 (the same bits)",
                                name, b, h, t, c, found, kOtherRun, wanted));
    result.worst = Element{name, b, h, t, c};
  });
  return result;
}

LawResult same_bits(const AttentionOutput& got, const AttentionOutput& expected) {
  return both(same_bits("o", got.out, expected.out), same_bits("lse", got.lse, expected.lse));
}

Measured measure(const Subject& subject, const Trial& trial) {
  return {attend(subject, trial), judge(subject, trial)};
}

LawResult equals_exact(const Measured& run) {
  const Report report = compare_forward(run.got, run.truth.exact, run.truth.allowed);
  return compared(report);
}

LawResult same_out(const Measured& base, const Measured& other) {
  LawResult agreement = agrees("o", other.got.out, base.got.out,
                               added(base.truth.allowed.out, other.truth.allowed.out));
  if (agreement.outcome == Outcome::held && zeros_would_pass(base.truth)) {
    return unbounded("an output of zeros would pass");
  }
  return agreement;
}

LawResult same_lse(const Subject& subject, const Measured& base, const Measured& other) {
  if (subject.can.has(Ability::deterministic)) return same_bits("lse", other.got.lse, base.got.lse);
  return shifted_lse(base, other, [](auto...) { return 0.0; });
}

LawResult shifted_lse(const Measured& base, const Measured& other, const LseShift& shift) {
  const auto expected = mapped(
      // lse moves by a known amount; its bound is that of both runs.
      base.got.lse, [&](double lse, auto b, auto h, auto i, auto) { return lse + shift(b, h, i); });
  return agrees("lse", other.got.lse, expected,
                added(base.truth.allowed.lse, other.truth.allowed.lse));
}

double logaddexp(double a, double b) {
  const double top = std::max(a, b);
  if (std::isinf(top)) return top;  // -inf twice has no difference to take, and +inf stays
  return top + std::log1p(std::exp(-std::abs(a - b)));
}

}  // namespace ringlab::verify
