#include "tests/stages/naive.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "reference/core/report.h"

namespace ringlab::stages::testing {
namespace {

constexpr double kInfinity = HUGE_VAL;

/// The visible scores of one row and what its bound needs.
struct Row {
  std::vector<std::int64_t> keys;
  std::vector<double> scores;
  std::vector<double> weights;  ///< not divided by their sum
  double top = -kInfinity;
  double sum = 0;
  double products = 0;  ///< max_j scale Σ|q k|
  double wire = 0;      ///< max_j of what the way of k_j between ranks does to its score
};

/// wire_error() of every element: of its token's largest.
Tensor<double> wire_errors(const TensorView<const double>& tensor, const NumericsProfile& profile) {
  Tensor<double> errors(tensor.extents);
  Extents tokens = tensor.extents;
  tokens.channels = 1;
  for_each_index(tokens, [&](auto b, auto h, auto j, auto) {
    double largest = 0;
    for (std::int64_t c = 0; c < tensor.extents.channels; ++c) {
      largest = std::max(largest, std::abs(tensor(b, h, j, c)));
    }
    for (std::int64_t c = 0; c < tensor.extents.channels; ++c) {
      errors(b, h, j, c) = wire_error(profile, std::abs(tensor(b, h, j, c)), largest);
    }
  });
  return errors;
}

Row scores_of(const AttentionInput& input, const Tensor<double>& wire_errors_of_k, std::int64_t b,
              std::int64_t h, std::int64_t i) {
  const Shape& s = input.problem.shape;
  const std::int64_t kv_head = h / (s.q_heads / s.kv_heads);
  Row row;
  for (std::int64_t j = 0; j < s.kv_tokens; ++j) {
    if (!input.problem.mask.allows(i, j)) continue;
    double score = 0, products = 0, wire = 0;
    for (std::int64_t c = 0; c < s.head_dim; ++c) {
      const double product = input.q(b, h, i, c) * input.k(b, kv_head, j, c);
      score += product * input.problem.scale;
      products += std::abs(product * input.problem.scale);
      wire +=
          std::abs(input.q(b, h, i, c) * input.problem.scale) * wire_errors_of_k(b, kv_head, j, c);
    }
    row.wire = std::max(row.wire, wire);
    row.keys.push_back(j);
    row.scores.push_back(score);
    row.top = std::max(row.top, score);
    row.products = std::max(row.products, products);
  }
  for (const double score : row.scores) {
    row.sum += row.weights.emplace_back(std::exp(score - row.top));
  }
  return row;
}

/// Relative error of a weight, as the row sum adds it and as it multiplies a value, and of the
/// sums.
struct RowError {
  double summed = 0;
  double multiplied = 0;
  double sums = 0;
};

RowError error_of(const Row& row, const NumericsProfile& p, std::int64_t head_dim) {
  const double d = static_cast<double>(head_dim), t = static_cast<double>(p.max_rescales);
  const double u = p.u_accumulate;
  const double exponent = (gamma_bound(d + 2, u) + (2 * t + 6) * u) * row.products +
                          (t + 1) * (p.exp_error + 2 * u) + row.wire;
  const double weight = std::expm1(2 * exponent);
  return {weight + (1 + weight) * p.u_row_sum, weight + (1 + weight) * p.u_probability,
          gamma_bound(static_cast<double>(row.keys.size()) + 2 * t + 2, u)};
}

}  // namespace

NaiveResult naive_attention(const AttentionInput& input, const NumericsProfile& profile) {
  const Shape& s = input.problem.shape;
  NaiveResult result{{Tensor<double>(s.out()), Tensor<double>(s.lse())},
                     {Tensor<double>(s.out()), Tensor<double>(s.lse())}};
  const Tensor<double> of_k = wire_errors(input.k, profile), of_v = wire_errors(input.v, profile);
  for_each_index(s.lse(), [&](auto b, auto h, auto i, auto) {
    const Row row = scores_of(input, of_k, b, h, i);
    const RowError error = error_of(row, profile, s.head_dim);
    const bool empty = row.keys.empty();
    const double lse = empty ? -kInfinity : row.top + std::log(row.sum);
    result.exact.lse(b, h, i, 0) = lse;
    result.allowed.lse(b, h, i, 0) =
        empty ? 0
              : error.summed + error.sums +
                    4 * profile.u_lse * (std::abs(row.top) + std::abs(lse) + 1);
    const std::int64_t kv_head = h / (s.q_heads / s.kv_heads);
    for (std::int64_t c = 0; c < s.v_dim; ++c) {
      double out = 0, largest = 0, wire = 0;
      for (std::size_t j = 0; j < row.keys.size(); ++j) {
        const double value = input.v(b, kv_head, row.keys[j], c);
        out += row.weights[j] / row.sum * value;
        largest = std::max(largest, std::abs(value));
        wire = std::max(wire, of_v(b, kv_head, row.keys[j], c));
      }
      result.exact.out(b, h, i, c) = out;
      result.allowed.out(b, h, i, c) =
          (largest + wire) * (error.summed + error.multiplied + 2 * error.sums) + wire +
          4 * profile.u_accumulate * std::abs(out) +
          half_ulp(profile.out_dtype, 1.01 * std::abs(out)) * (empty ? 0 : 1.01);
    }
  });
  return result;
}

AttentionTensors random_tensors(const Problem& problem, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto fill = [&](const Extents& extents) {
    Tensor<double> tensor(extents);
    for (double& x : tensor.values()) x = round_to(problem.dtype, normal(random));
    return tensor;
  };
  return {fill(problem.shape.q()), fill(problem.shape.k()), fill(problem.shape.v())};
}

Problem make_problem(const Shape& shape, const std::string& mask, DType dtype) {
  return {.shape = shape,
          .dtype = dtype,
          .scale = default_scale(shape.head_dim),
          .mask = parse_mask(mask).bind(shape.q_tokens, shape.kv_tokens)};
}

std::string difference(const AttentionOutput& got, const NaiveResult& naive) {
  Report report;
  report.tensors = {
      compare("o", got.out.view(), naive.exact.out.view(), naive.allowed.out.view()),
      compare("lse", got.lse.view(), naive.exact.lse.view(), naive.allowed.lse.view())};
  return report.passed() ? "" : report.summary();
}

}  // namespace ringlab::stages::testing
