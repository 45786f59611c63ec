#include "reference/attention/modified.h"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>

#include "reference/attention/compensated.h"

namespace ringlab {
namespace {

constexpr double kTanhError = 6 * kUnitRoundoff;  // the C library's tanh and cosh: within 3 ulps

/// Soft-capping changes no distance between scores for the larger: |cap tanh(x / cap)|' <= 1. And
/// because x (1 - tanh² x) <= 0.45, rounding score / cap costs at most half a cap.
void soft_cap(double cap, double score, double error, ModifiedScore& result) {
  const double ratio = score / cap;
  const double size = std::min(std::abs(score), 0.5 * cap);
  result.capped = cap * std::tanh(ratio);
  result.error =
      (error + kUnitRoundoff * size + (kTanhError + kUnitRoundoff) * std::abs(result.capped)) *
          kOutward +
      (cap + 1) * kUnderflow;
  // d ln(1/cosh²) = -2 tanh, so the relative error of 1/cosh² is twice the error of the ratio.
  const double cosh = std::cosh(ratio);  // may be inf
  result.steepness = 1 / cosh / cosh;
  const double ratio_error =
      (error / cap + kUnitRoundoff * std::abs(ratio)) * kOutward + 2 * kUnderflow;
  const double relative = std::expm1(2 * ratio_error) +
                          (2 * kTanhError + 2 * kUnitRoundoff) * std::exp(2 * ratio_error);
  result.steepness_error =
      ratio_error < 1 ? std::min(result.steepness * relative * kOutward + 4 * kUnderflow, 1.0) : 1;
}

}  // namespace

ScoreModifier::ScoreModifier(const Problem& problem)
    : modifiers_(&problem.modifiers), offset_(problem.shape.kv_tokens - problem.shape.q_tokens) {}

ModifiedScore ScoreModifier::operator()(std::int64_t q_head, std::int64_t query, std::int64_t key,
                                        double score, double error) const {
  ModifiedScore result{.value = score, .error = error, .capped = score};
  if (modifiers_->softcap != 0) {
    soft_cap(modifiers_->softcap, score, error, result);
    result.value = result.capped;
  }
  if (!modifiers_->alibi_slopes.empty()) {
    const double slope = modifiers_->alibi_slopes[static_cast<std::size_t>(q_head)];
    const std::int64_t apart = query + offset_ - key;
    result.bias = slope * std::abs(static_cast<double>(apart));
    result.value = result.capped - result.bias;
    // The conversion of the distance is exact below 2^53, the product rounds once.
    result.error +=
        (2 * kUnitRoundoff * std::abs(result.bias) + kUnitRoundoff * std::abs(result.value)) *
        kOutward;
  }
  return result;
}

std::optional<double> ScoreModifier::sink(std::int64_t q_head) const {
  if (modifiers_->sinks.empty()) return std::nullopt;
  return modifiers_->sinks[static_cast<std::size_t>(q_head)];
}

Dropout::Dropout(const Modifiers& modifiers)
    : seed_(modifiers.dropout_seed),
      threshold_(static_cast<std::uint64_t>(std::round(modifiers.dropout * 0x1p32))),
      factor_(1.0 / (1.0 - modifiers.dropout)) {}

bool Dropout::keeps(std::int64_t batch, std::int64_t q_head, std::int64_t query,
                    std::int64_t key) const {
  const auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const PhiloxWords words =
      random_words({{low(key / 4), low(query), low(q_head), low(batch)}}, seed_);
  return words.word[key % 4] >= threshold_;
}

PhiloxWords random_words(const PhiloxWords& counter, std::uint64_t key) {
  r123::Philox4x32::ctr_type words = {
      {counter.word[0], counter.word[1], counter.word[2], counter.word[3]}};
  const r123::Philox4x32::key_type keys = {
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  words = r123::Philox4x32()(words, keys);
  return {{words[0], words[1], words[2], words[3]}};
}

}  // namespace ringlab
