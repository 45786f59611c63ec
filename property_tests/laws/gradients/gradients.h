// Trials, measurements and comparisons for the laws about gradients.
#pragma once

#include <optional>
#include <string>

#include "property_tests/laws/findings.h"
#include "property_tests/laws/trial.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {

/// A trial and the gradient dO of the loss.
struct GradientTrial {
  Trial base;
  Tensor<double> dout;
  AttentionInput input() const;
  const Shape& shape() const { return base.shape(); }
};
GradientTrial make_gradient_trial(const Case& c);

/// Runs the subject; an environment error when it gives no gradients or gives them other extents.
AttentionGradients differentiate(const Subject& subject, const GradientTrial& trial);
/// The outputs and gradients of an input with dout; errors as of differentiate().
RunResult run_both_passes(const Subject& subject, const AttentionInput& input,
                          const RunOptions& options);

/// Gradients of a subject, the exact ones, and how far apart they may be.
struct MeasuredGradients {
  AttentionGradients got;
  ExactBackward exact;
  BackwardTolerance allowed;
  AttentionOutput outputs = {};  ///< o and lse of the same call
};
MeasuredGradients measure_gradients(const Subject& subject, const GradientTrial& trial);
/// The gradients of `input`, which has the numbers of the trial in another memory order.
MeasuredGradients measure_gradients(const Subject& subject, const GradientTrial& trial,
                                    const AttentionInput& input);
/// Held where dq, dk and dv lie within their tolerances of the exact ones.
LawResult equal_exact(const MeasuredGradients& measured);
/// True when gradients of zeros would pass although a query sees a key: nothing can be learned
/// then.
bool zero_gradients_would_pass(const GradientTrial& trial, const MeasuredGradients& measured);

/// Held where dq, dk and dv of two runs agree within the tolerances of both.
LawResult same_gradients(const std::string& what, const MeasuredGradients& got,
                         const MeasuredGradients& want);
/// Held where dq, dk and dv have equal values, or are at most `allowed` apart where that is given;
/// NaN is broken.
LawResult same_gradient_bits(const std::string& what, const AttentionGradients& got,
                             const AttentionGradients& want,
                             const std::optional<BackwardTolerance>& allowed = {});
/// The tolerances of two runs of this trial together, for subjects the bits of whose gradients
/// differ from run to run; nothing for others, which are asked for equal bits.
std::optional<BackwardTolerance> allowed_between_runs(const Subject& subject,
                                                      const GradientTrial& trial);
/// Both tolerances where bits may change beside hidden numbers that become `value`, else nothing.
std::optional<BackwardTolerance> allowed_beside(const Subject& subject, const GradientTrial& trial,
                                                double value);

/// Σ factor · gradient, with the tolerance of the sum.
class GradientSum {
 public:
  void add(double factor, double got, double allowed, double exact);
  /// Adds a part that comes from elsewhere, known within `error`.
  void add_known(long double value, long double error);
  /// Broken unless the sum is zero within the tolerances of its terms; discarded when no term is
  /// larger than that.
  LawResult vanishes(const std::string& name) const;

 private:
  long double sum_ = 0, allowed_ = 0, magnitude_ = 0, largest_ = 0;
};

/// The first result that is broken, else held when one of them held, else discarded.
LawResult any_held(const std::vector<LawResult>& results);

}  // namespace ringlab::verify
