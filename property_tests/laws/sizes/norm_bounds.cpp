#include "property_tests/laws/sizes/norm_bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ringlab::verify {
namespace {

// Factor that covers the rounding of the plain double sums below.
constexpr double kOutward = 1 + 0x1p-30;

/// Norms of the keys and values of one head of one batch.
struct HeadNorms {
  std::vector<double> key, value;  ///< max_j |k_jc|, max_j |v_jc|
  double key_sum = 0;              ///< Σ_c max_j |k_jc|
  double largest_key = 0, largest_value = 0;
};

/// max_j |x_jc| of every channel.
std::vector<double> largest_of(const TensorView<const double>& x, std::int64_t b, std::int64_t h) {
  std::vector<double> largest(static_cast<std::size_t>(x.extents.channels));
  for (std::int64_t j = 0; j < x.extents.tokens; ++j) {
    for (std::size_t c = 0; c < largest.size(); ++c) {
      largest[c] = std::max(largest[c], std::abs(x(b, h, j, static_cast<std::int64_t>(c))));
    }
  }
  return largest;
}

HeadNorms norms_of(const AttentionInput& input, std::int64_t b, std::int64_t kv_head) {
  HeadNorms norms{largest_of(input.k, b, kv_head), largest_of(input.v, b, kv_head)};
  for (const double x : norms.key) {
    norms.key_sum += x;
    norms.largest_key = std::max(norms.largest_key, x);
  }
  for (const double x : norms.value) norms.largest_value = std::max(norms.largest_value, x);
  return norms;
}

/// The terms of a key that has the largest of everything in its row.
ScoreTerms largest_terms(const AttentionInput& input, const HeadNorms& norms, std::int64_t b,
                         std::int64_t h, std::int64_t i) {
  const Problem& problem = input.problem;
  double products = 0, queries = 0;
  for (std::int64_t c = 0; c < problem.shape.head_dim; ++c) {
    const double q = std::abs(input.q(b, h, i, c));
    queries += q;
    products += q * norms.key[static_cast<std::size_t>(c)];
  }
  const double size = std::abs(problem.scale) * products * kOutward;
  return {.head_dim = problem.shape.head_dim,
          .absolute_products = size,
          .distance_from_max = 2 * size,
          .largest_score = size,
          .largest_products = size,
          .scale = std::abs(problem.scale),
          .key_magnitude = norms.key_sum * kOutward,
          .query_magnitude = queries * kOutward,
          .key_largest = norms.largest_key,
          .any_key_largest = norms.largest_key};
}

/// The bounds of one row, whose keys are no more than `keys`.
struct RowBounds {
  const NumericsProfile& profile;
  const HeadNorms& norms;
  std::int64_t keys;
  double score_error;  ///< of any key
  double largest_score;

  double rho() const { return std::expm1(score_error) * kOutward; }
  double merging() const { return merge_error(profile, largest_score, keys); }

  double out(double exact, std::size_t channel) const {
    const double largest = norms.value[channel];
    const double wire = wire_error(profile, largest, norms.largest_value);
    const double n = static_cast<double>(keys);
    if (!(4 * n * (largest + wire) <= profile.max_finite)) {
      return std::numeric_limits<double>::infinity();
    }
    return output_bound(profile, {.keys = keys,
                                  .weighted_spread = rho() * (largest + exact),
                                  .weighted_rho = rho(),
                                  .weighted_magnitude = largest,
                                  .magnitude_sum = n * largest,
                                  .row_sum = 1,
                                  .out = exact,
                                  .max_error = score_error,
                                  .merge_error = merging(),
                                  .weighted_wire = (1 + rho()) * wire,
                                  .wire_sum = n * wire}) *
           kOutward;
  }

  /// Takes a row sum of 1, and adds its logarithm, at most log(keys), to the row's maximum instead.
  double lse(double exact) const {
    const double row_max = largest_score + std::log(static_cast<double>(keys));
    return lse_bound(profile, {.keys = keys,
                               .weighted_rho = rho(),
                               .row_max = row_max,
                               .row_sum = 1,
                               .lse = exact,
                               .max_error = score_error,
                               .merge_error = merging()}) *
           kOutward;
  }
};

}  // namespace

ForwardTolerance tolerance_by_norms(const AttentionInput& input, const ExactForward& exact,
                                    const NumericsProfile& profile) {
  const Shape& s = input.problem.shape;
  ForwardTolerance tolerance{Tensor<double>(s.out()), Tensor<double>(s.lse())};
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.q_heads; ++h) {
      const HeadNorms norms = norms_of(input, b, h / (s.q_heads / s.kv_heads));
      for (std::int64_t i = 0; i < s.q_tokens; ++i) {
        if (std::isinf(exact.lse(b, h, i, 0))) continue;  // sees no key: exactly 0 and -inf
        const ScoreTerms terms = largest_terms(input, norms, b, h, i);
        const KeyInterval seen = input.problem.mask.interval(i);
        const RowBounds row{profile, norms, seen.end - seen.begin, score_error(profile, terms),
                            terms.largest_score};
        const double own = exact.lse_error(b, h, i, 0);
        tolerance.lse(b, h, i, 0) = row.lse(std::abs(exact.lse(b, h, i, 0)) + own) + own;
        for (std::int64_t c = 0; c < s.v_dim; ++c) {
          const double error = exact.out_error(b, h, i, c);
          const double out = std::abs(exact.out(b, h, i, c)) + error;
          tolerance.out(b, h, i, c) = row.out(out, static_cast<std::size_t>(c)) + error;
        }
      }
    }
  }
  return tolerance;
}

}  // namespace ringlab::verify
