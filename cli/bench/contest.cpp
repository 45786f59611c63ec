#include "cli/bench/contest.h"

#include <algorithm>
#include <thread>

#include "cli/inputs/subjects.h"
#include "cli/run/run_rows.h"
#include "property_tests/endings.h"
#include "property_tests/gradient_identities.h"
#include "property_tests/sampled_check.h"

namespace ringlab::cli {
namespace {

constexpr std::int64_t kCheckedRows = 16;

/// Two products a pair and head forward, five more backward: each a multiplication and an addition
/// for every channel.
double flops_of(const AttentionInput& input) {
  const Shape& shape = input.problem.shape;
  const auto forward = shape.head_dim + shape.v_dim;
  const auto backward = input.dout ? 3 * shape.head_dim + 2 * shape.v_dim : 0;
  return 2 * static_cast<double>(input.problem.mask.count_all()) *
         static_cast<double>(shape.batch * shape.q_heads * (forward + backward));
}

RunResult run_once(const Contender& contender, const AttentionInput& input) {
  try {
    return contender.subject.run(input, contender.options);
  } catch (const verify::Unsupported& reason) {
    refuse_problem(contender.subject, reason.what());
  }
}

void check_some_rows(const Contender& contender, const AttentionInput& input,
                     const RunResult& result, BenchLine& line) {
  const std::int64_t tokens = input.problem.shape.q_tokens;
  const RunOptions& options = contender.options;
  const std::vector<std::int64_t> rows = verify::sample_rows(
      make_layout(options, tokens, options.q_layout), std::min(kCheckedRows, tokens));
  const Report report = verify::check_sampled(
      {.problem = input.problem,
       .profile = contender.subject.profile(input.problem, options),
       .rows = rows,
       .threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))},
      verify::groups_of(input), rows_of_output(result.output, rows));
  line.worst = report.worst_ratio();
  line.right = report.held();
  line.open = report.passed() && !line.right;
}

void check_sums(const Contender& contender, const AttentionInput& input, const RunResult& result,
                BenchLine& line) {
  verify::GradientIdentities sums(input.problem,
                                  contender.subject.profile(input.problem, contender.options));
  const Positions all = Positions::all(input.problem.shape.q_tokens);
  sums.add(verify::gradient_rows(all, input, result.output.out, *result.gradients));
  bool inside = true;
  for (const verify::Identity& identity : sums.results()) {
    inside &= identity.holds();
    const double ratio = identity.worst / verify::Identity::kMost;
    if (!(ratio <= line.worst)) line.worst = ratio;  // NaN is the worst of all
  }
  const bool holds = sums.hold();
  line.open = inside && (line.open || (line.right && !holds));
  line.right &= holds;
}

}  // namespace

std::vector<BenchLine> contest(const LoadedInput& loaded, const std::vector<Contender>& contenders,
                               int rounds, const std::function<void(int)>& progress) {
  const AttentionInput input = loaded.input();
  const std::size_t count = contenders.size();
  std::vector<RunResult> results(count);
  std::vector<std::vector<double>> seconds(count), ratios(count);
  int runs = 0;
  for (int round = 0; round <= rounds; ++round) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t at = (turn + static_cast<std::size_t>(round)) % count;
      results[at] = run_once(contenders[at], input);
      progress(++runs);
    }
    for (std::size_t at = 0; round > 0 && at < count; ++at) {
      seconds[at].push_back(results[at].seconds);
      ratios[at].push_back(results[at].seconds / results[0].seconds);
    }
  }
  const double flops = flops_of(input);
  std::vector<BenchLine> lines;
  for (std::size_t at = 0; at < count; ++at) {
    lines.push_back({.seconds = spread_of(seconds[at]),
                     .ratio = spread_of(ratios[at]),
                     .flops = flops,
                     .moved = report::totals_of(results[at])});
    check_some_rows(contenders[at], input, results[at], lines.back());
    if (results[at].gradients) check_sums(contenders[at], input, results[at], lines.back());
  }
  return lines;
}

}  // namespace ringlab::cli
