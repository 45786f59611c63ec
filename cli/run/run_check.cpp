#include "cli/run/run_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/inputs/run_options.h"
#include "cli/line/progress.h"
#include "cli/report/human.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"
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

// Subjects in fp32 or less leave room for the error of plain fp64 sums.
ExactForward reference_for(const AttentionInput& input, const ExactOptions& options) {
  return input.problem.dtype == DType::f64 ? exact_forward(input, options)
                                           : fast_forward(input, options);
}

void check_gradients(const AttentionInput& input, const NumericsProfile& profile, const Rows& rows,
                     const AttentionGradients& got, int threads, Report& report) {
  const ExactBackward exact = exact_backward(input, *input.dout, threads);
  const BackwardTolerance allowed = backward_tolerance(input, *input.dout, exact, profile, threads);
  report.tensors.push_back(compare_rows("dq", got.dq, exact.dq, allowed.dq, rows.queries));
  report.tensors.push_back(compare_rows("dk", got.dk, exact.dk, allowed.dk, rows.keys));
  report.tensors.push_back(compare_rows("dv", got.dv, exact.dv, allowed.dv, rows.keys));
}

}  // namespace

CheckedResult check_result(const AttentionInput& input, const NumericsProfile& profile,
                           const RunResult& got) {
  const Progress progress("comparing with the fp64 reference");
  ExactOptions options;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const ExactForward exact = reference_for(input, options);
  const ForwardTolerance allowed = forward_tolerance(input, exact, profile, options);
  CheckedResult checked{
      .report = compare_forward(got.output, exact, allowed),
      .settled = verify::settle_undecided(input, got.output, exact, allowed, options)};
  const Shape& shape = input.problem.shape;
  const Rows all{Positions::all(shape.q_tokens), Positions::all(shape.kv_tokens)};
  if (got.gradients) {
    check_gradients(input, profile, all, *got.gradients, options.threads, checked.report);
  }
  return checked;
}

Report check_shard(const AttentionInput& input, const RunOptions& options,
                   const NumericsProfile& profile, int rank, const RunResult& got) {
  const Shape& shape = input.problem.shape;
  const Rows rows{make_layout(options, shape.q_tokens, options.q_layout).positions(rank),
                  make_layout(options, shape.kv_tokens, options.kv_layout).positions(rank)};
  Report report{.tensors = {TensorReport{.tensor = "o", .worst = {}},
                            TensorReport{.tensor = "lse", .worst = {}}}};
  const ExactOptions exact_rows{.rows = rows.queries.to_list(), .threads = 1};
  if (!exact_rows.rows.empty()) {  // an empty list would mean all of them, not none
    const ExactForward exact = reference_for(input, exact_rows);
    report =
        compare_forward(got.output, exact, forward_tolerance(input, exact, profile, exact_rows));
  }
  if (got.gradients) {
    check_gradients(input, profile, rows, *got.gradients, exact_rows.threads, report);
  }
  return report;
}

SampledRows rows_of_rank(const std::vector<std::int64_t>& rows, const Positions& queries,
                         const AttentionOutput& output) {
  const std::vector<std::int64_t> tokens = queries.to_list();
  std::vector<std::pair<std::int64_t, std::int64_t>> held;  // token, place in the rank's rows
  for (std::size_t local = 0; local < tokens.size(); ++local) {
    if (!std::ranges::binary_search(rows, tokens[local])) continue;
    held.emplace_back(tokens[local], static_cast<std::int64_t>(local));
  }
  std::ranges::sort(held);
  SampledRows mine;
  std::vector<std::int64_t> places;
  for (const auto& [token, place] : held) {
    mine.rows.push_back(token);
    places.push_back(place);
  }
  const Positions chosen = Positions::from_list(places);
  mine.output = {shard_of<double>(output.out.view(), chosen),
                 shard_of<double>(output.lse.view(), chosen)};
  return mine;
}

std::int64_t take_check_rows(Arguments& arguments) {
  if (!arguments.given("check-rows")) return 0;
  if (arguments.given("check")) {
    throw_usage_error({"--check-rows", "one kind of check", "--check too",
                       "--check compares all rows: leave one of them out."});
  }
  return take_whole(arguments, "check-rows", 0);
}

void check_row_count(std::int64_t wanted, const Problem& problem) {
  if (wanted <= problem.shape.q_tokens) return;
  throw_usage_error({"--check-rows",
                     fmt::format("at most {}, the query tokens", problem.shape.q_tokens),
                     fmt::format("{}", wanted), "--check compares them all."});
}

std::string describe_rows(std::size_t rows, const Problem& problem, GradientCheck gradients) {
  const Shape& shape = problem.shape;
  return fmt::format("o and lse of {} of {} query rows, all {} heads{}",
                     report::human_count(static_cast<std::int64_t>(rows)),
                     report::human_count(shape.q_tokens),
                     report::human_count(shape.batch * shape.q_heads),
                     gradients == GradientCheck::none      ? "; the gradients were not checked"
                     : gradients == GradientCheck::by_sums ? "; gradients by sums over all tokens"
                                                           : "");
}

}  // namespace ringlab::cli
