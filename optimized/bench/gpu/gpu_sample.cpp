#include "optimized/bench/gpu/gpu_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "optimized/ring/device_engine.h"
#include "property_tests/gradient_identities.h"
#include "reference/attention/exact.h"
#include "reference/core/positions.h"

namespace ringlab::bench {
namespace {

constexpr std::int64_t kSampledRows = 16;

/// Rows from the first to the last, and on both sides of borders between tiles.
std::vector<std::int64_t> sampled_rows(std::int64_t tokens) {
  std::set<std::int64_t> rows = {tokens - 1};
  for (std::int64_t i = 0; i < kSampledRows; ++i) rows.insert(i * tokens / kSampledRows);
  for (const std::int64_t border : {64, 128, 192}) {
    for (const std::int64_t row : {border - 1, border}) rows.insert(std::min(row, tokens - 1));
  }
  return {rows.begin(), rows.end()};
}

template <class T>
Tensor<double> widened(const Tensor<T>& tensor) {
  Tensor<double> wide(tensor.extents());
  std::ranges::transform(tensor.values(), wide.values().begin(),
                         [](T value) { return static_cast<double>(value); });
  return wide;
}

template <class T>
Tensor<double> rows_of(const Tensor<T>& tensor, const std::vector<std::int64_t>& rows) {
  Extents extents = tensor.extents();
  extents.tokens = std::ssize(rows);
  Tensor<double> chosen(extents);
  for_each_index(extents, [&](auto b, auto h, auto t, auto c) {
    chosen(b, h, t, c) = static_cast<double>(tensor(b, h, rows[static_cast<std::size_t>(t)], c));
  });
  return chosen;
}

std::string wrong_in_rows(const GpuSample& sample, const NumericsProfile& profile) {
  const ExactOptions options{
      .rows = sampled_rows(sample.problem.shape.q_tokens),
      .threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
  const AttentionTensors wide{widened(sample.q), widened(sample.k), widened(sample.v)};
  const AttentionInput input = wide.input(sample.problem);
  const ExactForward exact = fast_forward(input, options);
  const Report report =
      compare_forward({rows_of(sample.out, options.rows), rows_of(sample.lse, options.rows)}, exact,
                      forward_tolerance(input, exact, profile, options));
  if (report.held()) return "";
  return report.passed() ? "bounds are so wide that zeros would pass" : report.summary();
}

std::string wrong_in_gradients(const GpuSample& sample, const NumericsProfile& profile) {
  const Positions all = Positions::all(sample.problem.shape.q_tokens);
  verify::GradientIdentities identities(sample.problem, profile);
  identities.add<BFloat16>({.queries = all,
                            .q = sample.q.view(),
                            .dout = sample.dout.view(),
                            .out = sample.out.view(),
                            .dq = sample.dq.view(),
                            .k = sample.k.view(),
                            .v = sample.v.view(),
                            .dk = sample.dk.view(),
                            .dv = sample.dv.view()});
  for (const verify::Identity& one : identities.results()) {
    if (one.holds()) continue;
    return fmt::format("{} is off by {:.3g} times what rounding makes likely, {}", one.name,
                       one.worst, one.where);
  }
  return "";
}

}  // namespace

std::string wrong_in(const GpuSample& sample, double exp_error) {
  NumericsProfile profile = ring::device_engine_profile(sample.problem, {});
  profile.exp_error += exp_error;
  std::string wrong = wrong_in_rows(sample, profile);
  if (!wrong.empty() || sample.dq.size() == 0) return wrong;
  return wrong_in_gradients(sample, profile);
}

}  // namespace ringlab::bench
