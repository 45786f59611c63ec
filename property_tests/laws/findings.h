// Results of laws, made from comparisons of tensors.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "property_tests/law.h"
#include "property_tests/laws/trial.h"
#include "reference/core/report.h"

namespace ringlab::verify {

LawResult held(double ratio = 0);
LawResult broken(std::string message);
LawResult discarded(std::string reason);
/// Discarded because the bounds of the case are as wide as what they bound: zeros would pass.
LawResult unbounded(std::string reason);
/// The result of a report: held with its worst ratio, broken with its summary and worst element, or
/// unbounded() where it passed and did not hold.
LawResult compared(const Report& report);

/// The first result that is broken; else the first discarded; else held with the larger ratio. The
/// numbers compared are those of both.
LawResult both(LawResult first, LawResult second);

/// Held where |got - expected| <= allowed for every element; a NaN on any side is broken. An
/// `allowed` that is NaN is no promise: it counts as infinite, and never as a verdict.
LawResult matches(std::string name, const Tensor<double>& got, const Tensor<double>& expected,
                  const Tensor<double>& allowed);
/// Compares with numbers that follow from another run of the subject; the message says so.
LawResult agrees(std::string name, const Tensor<double>& got, const Tensor<double>& other_run,
                 const Tensor<double>& allowed);
/// Held for equal values in two runs; signed zeros are equal, and NaN is broken even on both sides.
LawResult same_bits(std::string name, const Tensor<double>& got, const Tensor<double>& expected);
LawResult same_bits(const AttentionOutput& got, const AttentionOutput& expected);

/// The output of a run, together with the oracle's answer and tolerance.
struct Measured {
  AttentionOutput got;
  Judgement truth;
};
Measured measure(const Subject& subject, const Trial& trial);

/// Held where O and lse of the run lie within the tolerance; discarded where zeros would pass.
LawResult equals_exact(const Measured& run);

/// Held where O of two runs agrees within both tolerances; discarded where zeros would pass.
LawResult same_out(const Measured& base, const Measured& other);
/// Held where lse of two runs has the same bits, or agrees within both tolerances where the subject
/// promises no bits.
LawResult same_lse(const Subject& subject, const Measured& base, const Measured& other);
/// Held where lse of `other` is that of `base` plus shift(b, h, i), within both tolerances.
using LseShift = std::function<double(std::int64_t, std::int64_t, std::int64_t)>;
LawResult shifted_lse(const Measured& base, const Measured& other, const LseShift& shift);

/// log(e^a + e^b) without overflow; -inf is the empty sum.
double logaddexp(double a, double b);

}  // namespace ringlab::verify
