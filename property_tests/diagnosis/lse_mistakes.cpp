// Mistakes of the lse alone: its base, maximum, sum, scale and type.
#include <cmath>
#include <limits>
#include <numbers>

#include "property_tests/diagnosis/hypotheses.h"

namespace ringlab::verify {
namespace {

/// The largest score of a row that counts; -inf for none.
double row_maximum(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i) {
  double top = -std::numeric_limits<double>::infinity();
  for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
    if (model.in_sum(b, h, i, j) != 0) top = std::max(top, model.score(b, h, i, j));
  }
  if (model.sink_counts(b, h, i, 0) != 0) {
    top = std::max(top, model.trial.problem.modifiers.sinks[static_cast<std::size_t>(h)]);
  }
  return top;
}

/// A row's lse from its maximum, its sum's logarithm and the scale of scores.
using Lse = double (*)(double row_max, double log_sum, double scale);

/// The error of a formula is that which the errors of its arguments make, and a few roundings.
Hypothesis by_lse(Suspect suspect, Lse lse) {
  return by_result(std::move(suspect), [=](Prediction& prediction, const Model& model) {
    const double scale = model.trial.problem.scale;
    for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
      double &value = prediction.output.lse(b, h, i, 0),
             &allowed = prediction.allowed.lse(b, h, i, 0);
      if (std::isinf(value)) return;
      const double top = row_maximum(model, b, h, i), log_sum = value - top;
      value = lse(top, log_sum, scale);
      allowed = 2 * (std::abs(lse(top + allowed, log_sum, scale) - value) +
                     std::abs(lse(top, log_sum + allowed, scale) - value)) +
                8 * model.profile.u_accumulate * std::abs(value);
    });
  });
}

Hypothesis stored_in(DType dtype) {
  const std::string name(dtype_info(dtype).name);
  return by_result({"lse.stored_in_" + name, "lse is stored in " + name},
                   [=](Prediction& prediction, const Model& model) {
                     for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
                       double& value = prediction.output.lse(b, h, i, 0);
                       double& allowed = prediction.allowed.lse(b, h, i, 0);
                       const double rounded = round_to(dtype, value);
                       const double low = round_to(dtype, value - allowed);
                       const double high = round_to(dtype, value + allowed);
                       value = rounded;
                       if (low == high || std::isnan(high - low)) return;
                       allowed = high - low;
                     });
                   });
}

/// Writes one constant wherever a query sees nothing: a common choice in place of -inf.
Hypothesis finite_when_empty(double constant) {
  return by_result({"lse.finite_for_empty_rows", "rows that see no key have a finite lse"},
                   [=](Prediction& prediction, const Model&) {
                     for (double& value : prediction.output.lse.values()) {
                       if (std::isinf(value)) value = constant;
                     }
                   });
}

/// Takes lse, and not o, from other sums.
Hypothesis of_other_sums(Suspect suspect, void (*edit)(Model&)) {
  return by_result(std::move(suspect), [=](Prediction& prediction, const Model& model) {
    Model other = model;
    edit(other);
    const Prediction of_these = finish(other);
    prediction.output.lse = of_these.output.lse;
    prediction.allowed.lse = of_these.allowed.lse;
  });
}

}  // namespace

std::vector<Hypothesis> lse_mistakes() {
  constexpr double kLog2E = std::numbers::log2e;
  std::vector<Hypothesis> all = {
      by_lse({"lse.base_two", "lse is in base 2"},
             [](double top, double log_sum, double) { return (top + log_sum) * kLog2E; }),
      by_lse({"lse.sum_in_base_two", "lse is the maximum plus log2 of the row sum"},
             [](double top, double log_sum, double) { return top + log_sum * kLog2E; }),
      by_lse({"lse.maximum_in_base_two", "lse has a maximum in base 2"},
             [](double top, double log_sum, double) { return top * kLog2E + log_sum; }),
      by_lse(
          {"lse.in_nats_twice", "lse was multiplied by ln 2 although it was in nats"},
          [](double top, double log_sum, double) { return (top + log_sum) * std::numbers::ln2; }),
      by_lse({"lse.without_maximum", "lse lacks the maximum that was subtracted"},
             [](double, double log_sum, double) { return log_sum; }),
      by_lse({"lse.only_maximum", "lse is the maximum alone"},
             [](double top, double, double) { return top; }),
      by_lse({"lse.not_logarithmic", "lse is the row sum itself"},
             [](double, double log_sum, double) { return std::exp(log_sum); }),
      by_lse({"lse.negated", "lse has the wrong sign"},
             [](double top, double log_sum, double) { return -(top + log_sum); }),
      by_lse({"lse.product", "lse is the maximum times the logarithm of the row sum"},
             [](double top, double log_sum, double) { return top * log_sum; }),
      by_lse({"lse.difference", "lse is the maximum minus the logarithm of the row sum"},
             [](double top, double log_sum, double) { return top - log_sum; }),
      by_lse(
          {"lse.sum_without_logarithm", "lse is the maximum plus the row sum, not its logarithm"},
          [](double top, double log_sum, double) { return top + std::exp(log_sum); }),
      by_lse({"lse.maximum_not_scaled", "the maximum in lse is that of scores without their scale"},
             [](double top, double log_sum, double scale) { return top / scale + log_sum; }),
      by_lse({"lse.maximum_scaled_twice", "the maximum in lse is scaled twice"},
             [](double top, double log_sum, double scale) { return top * scale + log_sum; }),
      by_lse({"lse.scaled", "lse is scaled as scores are"},
             [](double top, double log_sum, double scale) { return (top + log_sum) * scale; }),
      of_other_sums({"lse.of_unscaled_scores", "lse is that of scores without their scale"},
                    [](Model& model) {
                      model.trial.problem.scale = 1;
                      score_again(model);
                    }),
      of_other_sums({"lse.of_hidden_keys", "lse counts keys that the mask hides, too"},
                    [](Model& model) { see_pairs(model, [](auto, auto) { return true; }); }),
      stored_in(DType::f16),
      stored_in(DType::bf16)};
  for (const double constant : {0.0, -5e4, -1e4, -1e5, -1e9, -1e30}) {
    all.push_back(finite_when_empty(constant));
  }
  return all;
}

}  // namespace ringlab::verify
