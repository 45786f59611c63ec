// Answers held against predictions.
#include <cmath>

#include "property_tests/diagnosis/model/model.h"

namespace ringlab::verify {

bool within(double got, double wanted, double allowed) {
  if (std::isinf(allowed) || got == wanted) return true;
  if (std::isnan(wanted) || std::isnan(allowed)) return std::isnan(got);
  return std::abs(got - wanted) <= allowed;
}

bool all_within(const Tensor<double>& got, const Tensor<double>& wanted,
                const Tensor<double>& allowed) {
  for (std::size_t n = 0; n < got.values().size(); ++n) {
    if (!within(got.values()[n], wanted.values()[n], allowed.values()[n])) return false;
  }
  return true;
}

namespace {

Foretold foretold(const Tensor<double>& got, const Tensor<double>& truth,
                  const Tensor<double>& truth_allowed, const Tensor<double>& predicted,
                  const Tensor<double>& allowed) {
  Foretold count;
  for (std::size_t n = 0; n < got.values().size(); ++n) {
    const double right = truth.values()[n], room = truth_allowed.values()[n];
    if (within(got.values()[n], right, room)) continue;
    if (std::isnan(allowed.values()[n]) && std::isnan(got.values()[n])) continue;  // of many causes
    ++count.wrong;
    const bool is_unknown = std::isinf(allowed.values()[n]);
    count.unknown += is_unknown;
    count.foretold += !is_unknown && !within(predicted.values()[n], right, room) &&
                      within(got.values()[n], predicted.values()[n], allowed.values()[n]);
  }
  return count;
}

}  // namespace

bool agrees(const Prediction& prediction, const AttentionOutput& got, LseCompared lse) {
  return all_within(got.out, prediction.output.out, prediction.allowed.out) &&
         (lse == LseCompared::no ||
          all_within(got.lse, prediction.output.lse, prediction.allowed.lse));
}

Foretold foretold(const Prediction& prediction, const Prediction& truth, const AttentionOutput& got,
                  LseCompared lse) {
  Foretold count = foretold(got.out, truth.output.out, truth.allowed.out, prediction.output.out,
                            prediction.allowed.out);
  if (lse == LseCompared::yes) {
    count += foretold(got.lse, truth.output.lse, truth.allowed.lse, prediction.output.lse,
                      prediction.allowed.lse);
  }
  return count;
}

}  // namespace ringlab::verify
