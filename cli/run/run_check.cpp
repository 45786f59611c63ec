#include "cli/run/run_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <utility>

#include "cli/inputs/run_options.h"
#include "cli/line/progress.h"
#include "cli/report/human.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "reference/core/shards.h"

namespace ringlab::cli {
namespace {

// The rows of the exact gradients that are compared.
struct Rows {
  Positions queries, keys;
};

TensorReport compare_rows(const std::string& name, const Tensor<double>& got,
                          const Tensor<double>& exact, const Tensor<double>& allowed,
                          const Positions& rows, double size = 0) {
  const Tensor<double> exact_rows = shard_of<double>(exact.view(), rows);
  const Tensor<double> allowed_rows = shard_of<double>(allowed.view(), rows);
  return compare(name, got.view(), exact_rows.view(), allowed_rows.view(), size);
}

/// The reference of o and lse, and the allowed errors.
struct Judgement {
  ExactForward exact;
  ForwardTolerance allowed;
};

Judgement judged_rows(const AttentionInput& input, const NumericsProfile& profile,
                      const ExactOptions& options) {
  ExactForward exact = reference_for(input, options);
  ForwardTolerance allowed = forward_tolerance(input, exact, profile, options);
  return {std::move(exact), std::move(allowed)};
}

void put_rows(const Tensor<double>& rows, std::int64_t first, Tensor<double>& whole) {
  for_each_index(rows.extents(), [&](auto b, auto h, auto t, auto c) {
    whole(b, h, first + t, c) = rows(b, h, t, c);
  });
}

Judgement room_for(const Shape& shape) {
  const Tensor<double> out(shape.out()), lse(shape.lse());
  return {.exact = {.out = out, .lse = lse, .out_error = out, .lse_error = lse},
          .allowed = {.out = out, .lse = lse}};
}

/// All rows, `block` at a time; `done` counts the pairs that are done.
Judgement judged_in_blocks(const AttentionInput& input, const NumericsProfile& profile, int threads,
                           std::int64_t block, std::atomic<std::int64_t>& done) {
  const Shape& shape = input.problem.shape;
  const Positions keys = Positions::all(shape.kv_tokens);
  Judgement whole = room_for(shape);
  for (std::int64_t first = 0; first < shape.q_tokens; first += block) {
    std::vector<std::int64_t> rows(
        static_cast<std::size_t>(std::min(block, shape.q_tokens - first)));
    std::iota(rows.begin(), rows.end(), first);
    const Judgement part = judged_rows(input, profile, {.rows = rows, .threads = threads});
    put_rows(part.exact.out, first, whole.exact.out);
    put_rows(part.exact.lse, first, whole.exact.lse);
    put_rows(part.exact.out_error, first, whole.exact.out_error);
    put_rows(part.exact.lse_error, first, whole.exact.lse_error);
    put_rows(part.allowed.out, first, whole.allowed.out);
    put_rows(part.allowed.lse, first, whole.allowed.lse);
    done += input.problem.mask.count(Positions::from_list(rows), keys);
  }
  return whole;
}

/// The exact results and their bounds; shows progress, and a faster check, where that takes long.
Judgement judged(const AttentionInput& input, const NumericsProfile& profile, int threads) {
  constexpr std::int64_t kPairsOfBlock = std::int64_t{1} << 23, kLeastRows = 64;
  const Shape& shape = input.problem.shape;
  const std::int64_t pairs_of_row = shape.batch * shape.q_heads * shape.kv_tokens;
  const std::int64_t block =
      std::max(kLeastRows, kPairsOfBlock / std::max<std::int64_t>(1, pairs_of_row));
  if (block >= shape.q_tokens) return judged_rows(input, profile, {.threads = threads});
  std::atomic<std::int64_t> done = 0;
  const Progress progress("checking (--check-rows 256 is faster)",
                          {&done, input.problem.mask.count_all()});
  return judged_in_blocks(input, profile, threads, block, done);
}

void check_gradients(const AttentionInput& input, const NumericsProfile& profile, const Rows& rows,
                     const AttentionGradients& got, int threads, Report& report) {
  const ExactBackward exact = exact_backward(input, *input.dout, threads);
  const BackwardTolerance allowed = backward_tolerance(input, *input.dout, exact, profile, threads);
  const GradientSizes sizes = gradient_sizes(input, *input.dout);
  report.tensors.push_back(
      compare_rows("dq", got.dq, exact.dq, allowed.dq, rows.queries, sizes.dq));
  report.tensors.push_back(compare_rows("dk", got.dk, exact.dk, allowed.dk, rows.keys, sizes.dk));
  report.tensors.push_back(compare_rows("dv", got.dv, exact.dv, allowed.dv, rows.keys));
}

}  // namespace

ExactForward reference_for(const AttentionInput& input, const ExactOptions& options) {
  return input.problem.dtype == DType::f64 ? exact_forward(input, options)
                                           : fast_forward(input, options);
}

CheckedResult check_result(const AttentionInput& input, const NumericsProfile& profile,
                           const RunResult& got) {
  ExactOptions options;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto [exact, allowed] = judged(input, profile, options.threads);
  const Progress progress("comparing with the fp64 reference");
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

CheckedResult check_shard(const AttentionInput& input, const RunOptions& options,
                          const NumericsProfile& profile, int rank, const RunResult& got) {
  const Shape& shape = input.problem.shape;
  const Rows rows{make_layout(options, shape.q_tokens, options.q_layout).positions(rank),
                  make_layout(options, shape.kv_tokens, options.kv_layout).positions(rank)};
  CheckedResult checked{.report = {.tensors = {TensorReport{.tensor = "o", .worst = {}},
                                               TensorReport{.tensor = "lse", .worst = {}}}},
                        .settled = {}};
  const ExactOptions exact_rows{.rows = rows.queries.to_list(), .threads = 1};
  if (!exact_rows.rows.empty()) {  // an empty list would mean all of them, not none
    const auto [exact, allowed] = judged_rows(input, profile, exact_rows);
    checked = {.report = compare_forward(got.output, exact, allowed),
               .settled = verify::settle_undecided(input, got.output, exact, allowed, exact_rows)};
  }
  if (got.gradients) {
    check_gradients(input, profile, rows, *got.gradients, exact_rows.threads, checked.report);
  }
  return checked;
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
