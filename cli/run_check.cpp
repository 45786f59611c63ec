#include "cli/run_check.h"

#include <algorithm>
#include <thread>

#include "cli/progress.h"
#include "reference/attention/exact.h"
#include "reference/core/shards.h"

namespace ringlab::cli {
namespace {

// Which rows of the exact gradients are compared.
struct Rows {
  Positions queries, keys;
};

TensorReport compare_rows(const std::string& name, const Tensor<double>& got,
                          const Tensor<double>& exact, const Tensor<double>& allowed,
                          const Positions& rows) {
  const Tensor<double> exact_rows = shard_of<double>(exact.view(), rows);
  const Tensor<double> allowed_rows = shard_of<double>(allowed.view(), rows);
  return compare(name, got.view(), exact_rows.view(), allowed_rows.view());
}

void check_gradients(const AttentionInput& input, const NumericsProfile& profile, const Rows& rows,
                     const AttentionGradients& got, Report& report) {
  const ExactBackward exact = exact_backward(input, *input.dout);
  const BackwardTolerance allowed = backward_tolerance(input, *input.dout, exact, profile);
  report.tensors.push_back(compare_rows("dq", got.dq, exact.dq, allowed.dq, rows.queries));
  report.tensors.push_back(compare_rows("dk", got.dk, exact.dk, allowed.dk, rows.keys));
  report.tensors.push_back(compare_rows("dv", got.dv, exact.dv, allowed.dv, rows.keys));
}

}  // namespace

Report check_result(const AttentionInput& input, const NumericsProfile& profile,
                    const RunResult& got) {
  const Progress progress("comparing with the fp64 reference");
  ExactOptions options;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const ExactForward exact = exact_forward(input, options);
  Report report =
      compare_forward(got.output, exact, forward_tolerance(input, exact, profile, options));
  const Shape& shape = input.problem.shape;
  const Rows all{Positions::all(shape.q_tokens), Positions::all(shape.kv_tokens)};
  if (got.gradients) check_gradients(input, profile, all, *got.gradients, report);
  return report;
}

Report check_shard(const AttentionInput& input, const RunOptions& options, int rank,
                   const ring::ShardResult& got) {
  const Shape& shape = input.problem.shape;
  const Rows rows{make_layout(options, shape.q_tokens, options.q_layout).positions(rank),
                  make_layout(options, shape.kv_tokens, options.kv_layout).positions(rank)};
  const NumericsProfile profile = ring::engine_profile(input.problem, options);
  Report report{.tensors = {TensorReport{.tensor = "o", .worst = {}},
                            TensorReport{.tensor = "lse", .worst = {}}}};
  const ExactOptions exact_rows{.rows = rows.queries.to_list(), .threads = 1};
  if (!exact_rows.rows.empty()) {  // an empty list would mean all of them, not none
    const ExactForward exact = exact_forward(input, exact_rows);
    report =
        compare_forward(got.output, exact, forward_tolerance(input, exact, profile, exact_rows));
  }
  if (got.gradients) check_gradients(input, profile, rows, *got.gradients, report);
  return report;
}

}  // namespace ringlab::cli
