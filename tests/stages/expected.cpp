#include "tests/stages/expected.h"

#include <random>
#include <utility>

namespace ringlab::stages::testing {

Expected expected_of(const AttentionInput& input, const NumericsProfile& profile) {
  ExactForward exact = exact_forward(input);
  ForwardTolerance allowed = forward_tolerance(input, exact, profile);
  return {{std::move(exact.out), std::move(exact.lse)},
          {std::move(allowed.out), std::move(allowed.lse)}};
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

std::string difference(const AttentionOutput& got, const Expected& expected) {
  Report report;
  report.tensors = {
      compare("o", got.out.view(), expected.exact.out.view(), expected.allowed.out.view()),
      compare("lse", got.lse.view(), expected.exact.lse.view(), expected.allowed.lse.view())};
  return report.passed() ? "" : report.summary();
}

}  // namespace ringlab::stages::testing
