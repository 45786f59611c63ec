// How laws say what came out.
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
/// Held with its worst ratio, or broken with its summary, and the element that was worst.
LawResult compared(const Report& report);

/// The first that is broken; else the first that is discarded; else held with the larger ratio.
LawResult both(LawResult first, LawResult second);

/// |got - expected| <= allowed for every element; a NaN on any side is broken. An `allowed` that is
/// no number is no promise: as if it were infinite, and never a verdict.
LawResult matches(std::string name, const Tensor<double>& got, const Tensor<double>& expected,
                  const Tensor<double>& allowed);
/// The same for a number that follows from another run of the subject, and says so.
LawResult agrees(std::string name, const Tensor<double>& got, const Tensor<double>& other_run,
                 const Tensor<double>& allowed);
/// Equal values in two runs of the subject; signed zeros are equal, and NaN is broken even when both sides have it.
LawResult same_bits(std::string name, const Tensor<double>& got, const Tensor<double>& expected);
LawResult same_bits(const AttentionOutput& got, const AttentionOutput& expected);

/// A run together with what the oracle says of it.
struct Measured {
  AttentionOutput got;
  Judgement truth;
};
Measured measure(const Subject& subject, const Trial& trial);

/// O and lse of the run lie within what the oracle allows; discarded where zeros would pass.
LawResult equals_exact(const Measured& run);

/// O of two runs agrees within both tolerances; discarded where zeros would pass.
LawResult same_out(const Measured& base, const Measured& other);
/// lse of `other` is that of `base` plus shift(b, h, i), within both tolerances.
using LseShift = std::function<double(std::int64_t, std::int64_t, std::int64_t)>;
LawResult shifted_lse(const Measured& base, const Measured& other, const LseShift& shift);

/// log(e^a + e^b) without overflow; -inf is the empty sum.
double logaddexp(double a, double b);

/// A value for Law::not_applicable: applies to every subject.
std::string applies_to_all(const Subject& subject);
/// Reasons for laws about the lse alone, for laws that place a row elsewhere and want its bits, and
/// for laws about memory orders.
std::string needs_lse(const Subject& subject);
std::string needs_same_bits_per_row(const Subject& subject);
std::string needs_strided_inputs(const Subject& subject);

}  // namespace ringlab::verify
