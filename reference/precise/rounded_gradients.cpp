#include "reference/precise/rounded_gradients.h"

#include <algorithm>

#include "reference/precise/gradient_sums.h"
#include "reference/precise/interval.h"
#include "reference/precise/rounding.h"

namespace ringlab {
namespace {

using precise::Interval;

/// Precision, and MPFR's memory, of one thread.
struct GradientScope {
  precise::ThreadCaches caches;
  precise::PrecisionScope precision;
  explicit GradientScope(long bits) : precision(bits) {}
};

/// An upper bound of |value - x| for every x inside.
double farthest(double value, const Interval& inside) {
  const Interval difference = inside - Interval(value);
  return std::max(-mpfr_get_d(difference.lower(), MPFR_RNDD),
                  mpfr_get_d(difference.upper(), MPFR_RNDU));
}

/// Rounds a tensor; returns how many elements the intervals did not decide.
std::int64_t round_all(DType dtype, const std::vector<Interval>& inside, Tensor<double>& values,
                       Tensor<double>& errors) {
  std::int64_t undecided = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const double lower = precise::nearest(dtype, inside[i].lower());
    const double upper = precise::nearest(dtype, inside[i].upper());
    if (!(lower == upper)) ++undecided;
    // Two candidates are left: of zeros of both signs, and of zero and its neighbour, the one
    // without a sign is taken.
    double& value = values.values()[i];
    value = lower == 0 || upper == 0 ? (lower == 0 && upper == 0 ? upper : 0.0) : lower;
    errors.values()[i] = farthest(value, inside[i]);
  }
  return undecided;
}

}  // namespace

RoundedGradients rounded_backward(const AttentionInput& input, const TensorView<const double>& dout,
                                  DType dtype, const PreciseOptions& options) {
  precise::check_gradient_input(input, dout, options.rows);
  with_element_type(dtype, [](auto) {});
  const Shape& shape = input.problem.shape;
  RoundedGradients result{Tensor<double>(shape.q()), Tensor<double>(shape.k()),
                          Tensor<double>(shape.v()), Tensor<double>(shape.q()),
                          Tensor<double>(shape.k()), Tensor<double>(shape.v())};
  const RowCounter row_done(options.progress, shape.batch * shape.q_heads * shape.q_tokens);
  for (const long bits : {320L, kGradientBits}) {
    const GradientScope scope(bits);
    const auto sums = precise::gradient_sums<Interval>(
        input, dout, options.threads, [&] { return GradientScope(bits); }, row_done);
    result.bits = bits;
    result.undecided = round_all(dtype, sums.dq, result.dq, result.dq_error) +
                       round_all(dtype, sums.dk, result.dk, result.dk_error) +
                       round_all(dtype, sums.dv, result.dv, result.dv_error);
    if (result.undecided == 0) break;
  }
  return result;
}

}  // namespace ringlab
