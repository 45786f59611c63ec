#include "property_tests/diagnosis/matched_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>

#include "property_tests/diagnosis/model/model.h"
#include "property_tests/generators/cases.h"

namespace ringlab::verify {
namespace {

/// Long enough that 1024 rows vote: a bias of one rounding in a hundred stands out of the noise.
Case filter_case(const Subject& subject, DType dtype, std::uint64_t seed) {
  Case c;
  c.seed = seed;
  c.shape = {1, 4, 2, 256, 256, 16, 16};
  c.dtype = dtype;
  c.ranks = 4;
  c.mask = "causal";
  c.transport = TransportKind::simulated;
  c.tile_queries = c.tile_keys = 32;
  return fitted(limited_to(std::move(c), subject.can));
}

/// The share of each key's pull v_j - o that a filter takes, by (query, key).
using Pull = std::function<double(std::int64_t i, std::int64_t j)>;

/// The error of O, and the weights that it should have.
struct Residuals {
  Trial trial;
  AttentionOutput got;
  ExactForward exact;
  Tensor<double> weight;  ///< e^(s - lse), (b, h, i, j), of hidden pairs, too
  double lse_of(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return exact.lse(b, h, i, 0);
  }
};

/// Σ_j pull w_j (v_j - o_c); of a filter on o itself: o_c.
std::vector<double> direction(const Residuals& r, std::int64_t b, std::int64_t h, std::int64_t i,
                              const Pull& pull) {
  std::vector<double> g(static_cast<std::size_t>(r.trial.shape().v_dim));
  for (std::int64_t j = 0; j < r.trial.shape().kv_tokens; ++j) {
    const double weight = pull(i, j) * r.weight(b, h, i, j);
    if (weight == 0) continue;
    for (std::size_t c = 0; c < g.size(); ++c) {
      const auto channel = static_cast<std::int64_t>(c);
      g[c] += weight *
              (r.trial.data.v(b, h / r.trial.group(), j, channel) - r.exact.out(b, h, i, channel));
    }
  }
  return g;
}

std::vector<double> out_row(const Residuals& r, std::int64_t b, std::int64_t h, std::int64_t i) {
  std::vector<double> g;
  for (std::int64_t c = 0; c < r.trial.shape().v_dim; ++c) g.push_back(r.exact.out(b, h, i, c));
  return g;
}

using Direction = std::function<std::vector<double>(std::int64_t, std::int64_t, std::int64_t)>;

/// Projects the error of every row on the direction, scaled to length one, so that the sum over
/// rows is normal with the variance of its squares; β is the factor of least squares.
FilterResult project(const Residuals& r, std::string name, const Direction& along) {
  double sum = 0, squares = 0, products = 0, sizes = 0;
  for_each_index(r.trial.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const std::vector<double> g = along(b, h, i);
    double size = 0, product = 0;
    for (std::size_t c = 0; c < g.size(); ++c) {
      const auto channel = static_cast<std::int64_t>(c);
      product += g[c] * (r.got.out(b, h, i, channel) - r.exact.out(b, h, i, channel));
      size += g[c] * g[c];
    }
    if (!(size > 1e-20) || std::isnan(product)) return;
    products += product;
    sizes += size;
    // Errors grow with the size of a row: each is scaled by it, so that a few do not decide.
    const double projection = product / std::sqrt(size);
    sum += projection;
    squares += projection * projection;
  });
  return {std::move(name), squares > 0 ? sum / std::sqrt(squares) : 0,
          sizes > 0 ? products / sizes : 0};
}

/// One run of the subject next to the exact answer, and the weights that the answer is made of.
Residuals residuals_of(const Subject& subject, const Case& c, Model& model) {
  Residuals r{make_trial(c), {}, {}, {}};
  r.got = attend(subject, r.trial);
  r.exact = exact_forward(r.trial.input());
  model = make_model(r.trial, subject.profile(r.trial.problem, r.trial.options));
  r.weight = mapped(model.score, [&](double score, auto b, auto h, auto i, auto) {
    return std::exp(score - r.lse_of(b, h, i));
  });
  return r;
}

/// The types where outputs are rounded most, and errors of arithmetic hide best.
std::vector<DType> filtered_dtypes(const Subject& subject) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    if (std::ranges::count(subject.can.dtypes, dtype) > 0) return {dtype};
  }
  return subject.can.dtypes;
}

}  // namespace

// The own key and the one after it are where causal masks go wrong by one.
std::vector<FilterResult> matched_filters(const Subject& subject, DType dtype, std::uint64_t seed) {
  try {
    const Case c = filter_case(subject, dtype, seed);
    Model model = make_model(make_trial(c), {});
    const Residuals r = residuals_of(subject, c, model);
    const Mask& mask = r.trial.problem.mask;
    const auto by_pull = [&](const Pull& pull) {
      return [&r, pull](auto b, auto h, auto i) { return direction(r, b, h, i, pull); };
    };
    std::vector<FilterResult> results;
    for (int step = 0; step < c.ranks; ++step) {
      results.push_back(
          project(r, fmt::format("step {} of the ring", step), by_pull([&](auto i, auto j) {
                    return mask.allows(i, j) && model.hop(i, j) == step ? 1.0 : 0.0;
                  })));
    }
    results.push_back(project(r, "o", [&](auto b, auto h, auto i) { return out_row(r, b, h, i); }));
    results.push_back(project(r, "the own key", by_pull([](auto i, auto j) { return i == j; })));
    results.push_back(
        project(r, "the key after the own", by_pull([](auto i, auto j) { return j == i + 1; })));
    return results;
  } catch (const std::exception&) {
    return {};  // it cannot take the problem, or fails: the laws say so
  }
}

std::vector<std::string> filter_warnings(const Subject& subject, std::uint64_t seed) {
  std::vector<std::string> warnings;
  for (const DType dtype : filtered_dtypes(subject)) {
    for (const FilterResult& result : matched_filters(subject, dtype, seed)) {
      if (std::abs(result.z) <= kFilterLimit) continue;
      warnings.push_back(fmt::format(
          "{}: {} counts {:.6f} times what it should (z = {:.1f}, more than {} is no chance)",
          dtype_info(dtype).name, result.filter, 1 + result.beta, result.z, kFilterLimit));
    }
  }
  return warnings;
}

}  // namespace ringlab::verify
