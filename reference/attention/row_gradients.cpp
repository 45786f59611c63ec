#include "reference/attention/row_gradients.h"

#include <cmath>
#include <string>

#include "reference/attention/compensated.h"
#include "reference/core/error.h"

namespace ringlab {
namespace {

struct Bounded {
  double value = 0;
  double error = 0;
};

/// x · y, both off by as much as they say.
Bounded product_of(const Bounded& x, const Bounded& y) {
  const double value = x.value * y.value;
  return {value, (x.error * std::abs(y.value) + (std::abs(x.value) + x.error) * y.error +
                  kUnitRoundoff * std::abs(value)) *
                         (1 + 0x1p-40) +
                     kUnderflow};
}

/// dP of every visible key, its error and its products. dout may hold any doubles, so the products
/// are taken as inexact.
void read_products(const AttentionInput& input, const TensorView<const double>& dout,
                   const RowAddress& at, const QueryRow& row, RowGradients& result) {
  std::vector<double> dout_buffer, v_buffer;
  const double* upstream = channels_of(dout, at.batch, at.q_head, at.query, dout_buffer);
  const std::int64_t channels = dout.extents.channels;
  for (std::size_t n = 0; n < row.key.size(); ++n) {
    const double* v = channels_of(input.v, at.batch, at.kv_head, row.key[n], v_buffer);
    const Dot product = dot(upstream, v, channels, false);
    check_finite(product.value, "dout · v");
    check_finite(product.magnitude, "dout · v");
    Bounded dp{product.value, product.error(channels)};
    if (!row.factor.empty()) dp = product_of({row.factor[n], row.factor_error(n)}, dp);
    result.products.push_back(row.factor_of(n) * product.magnitude);
    result.difference.push_back(dp.value);
    result.difference_error.push_back(dp.error);
  }
}

void read_probabilities(const QueryRow& row, RowGradients& result) {
  for (std::size_t n = 0; n < row.key.size(); ++n) {
    result.probability.push_back(row.probability(n));
    result.probability_error.push_back(row.probability_error(n));
    Bounded kept{result.probability[n], result.probability_error[n]};
    if (!row.factor.empty()) kept = product_of({row.factor[n], row.factor_error(n)}, kept);
    result.kept.push_back(kept.value);
    result.kept_error.push_back(kept.error);
  }
}

/// D_i, from the dP that still stand in `difference`.
Bounded weighted_sum(const RowGradients& row) {
  const std::int64_t keys = static_cast<std::int64_t>(row.probability.size());
  const double rounding = kUnitRoundoff + compensated_rounding(keys);
  DoubleSum sum;
  double error = 0;
  for (std::size_t n = 0; n < row.probability.size(); ++n) {
    const double product = row.probability[n] * row.difference[n];
    sum.add(product);
    error += row.probability_error[n] * std::abs(row.difference[n]) +
             (row.probability[n] + row.probability_error[n]) * row.difference_error[n] +
             rounding * std::abs(product) + kUnderflow;
  }
  const double slack = 1 + (2 * static_cast<double>(keys) + 16) * kUnitRoundoff;
  return {sum.value(), (error + kUnitRoundoff * std::abs(sum.value())) * slack};
}

}  // namespace

RowGradients row_gradients(const AttentionInput& input, const TensorView<const double>& dout,
                           const RowAddress& address, const QueryRow& row) {
  RowGradients result;
  read_probabilities(row, result);
  read_products(input, dout, address, row, result);
  const Bounded mean = weighted_sum(result);
  result.mean = mean.value;
  result.mean_error = mean.error;
  for (std::size_t n = 0; n < row.key.size(); ++n) {
    double& difference = result.difference[n];
    difference -= mean.value;
    double& error = result.difference_error[n];
    error = (error + mean.error + kUnitRoundoff * std::abs(difference)) * (1 + 0x1p-40);
    Bounded score =
        product_of({result.probability[n], result.probability_error[n]}, {difference, error});
    if (!row.steepness.empty()) {
      score = product_of({row.steepness[n], row.steepness_error[n]}, score);
    }
    result.score.push_back(score.value);
    result.score_error.push_back(score.error);
  }
  return result;
}

void check_dout(const AttentionInput& input, const TensorView<const double>& dout) {
  const Extents wanted = input.problem.shape.out();
  if (dout.extents == wanted) return;
  throw_input_error({.where = "dout",
                     .expected = "the shape of out, " + std::to_string(wanted.size()) + " values",
                     .actual = std::to_string(dout.extents.size()) + " values or other extents",
                     .hint = "dout is (batch, q_heads, q_tokens, v_dim)"});
}

}  // namespace ringlab
