// Ranks of this process: threads, or simulated ones.
#include <algorithm>
#include <new>
#include <utility>

#include "optimized/ring/host/one_rank.h"
#include "optimized/transport/run_network.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/schedule/schedule_plan.h"

namespace ringlab::ring {
namespace {

/// `parts` with the clock and the plan that the ranks share.
EngineParts shared_parts(const EngineParts& parts, const Problem& problem,
                         const RunOptions& options) {
  EngineParts shared = parts;
  if (!shared.clock_zero) shared.clock_zero = std::chrono::steady_clock::now();
  if (!shared.plan) {
    const Layout queries = make_layout(options, problem.shape.q_tokens, options.q_layout);
    const Layout keys = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
    shared.plan = std::make_shared<const SchedulePlan>(schedule_spec(options),
                                                       need_matrix(problem.mask, queries, keys));
  }
  return shared;
}

template <class Element>
RunSummary run_ranks(const CheckedRun<Element>& run) {
  const EngineParts parts = shared_parts(run.parts, run.problem, run.options);
  const CheckedRun<Element> of_rank{run.problem, run.options, run.ends, parts};
  std::vector<double> seconds(static_cast<std::size_t>(run.options.ranks));
  RunSummary all{.ranks = std::vector<RankStats>(seconds.size())};
  const NetworkSummary network = run_network(run.options, [&](Communicator& communicator) {
    RunSummary mine = run_rank(of_rank, communicator);
    const auto at = static_cast<std::size_t>(communicator.rank());
    seconds[at] = mine.seconds;
    all.ranks[at] = std::move(mine.ranks.front());
  });
  all.leftover_messages = network.leftover_messages;
  all.seconds = std::ranges::max(seconds);
  return all;
}

}  // namespace

void InProcess::check(const Problem&, const RunOptions& options) const {
  if (options.device == DeviceKind::cpu) return;
  throw_environment_error({.where = "device",
                           .expected = "cpu, for ranks on processors of this process",
                           .actual = "cuda",
                           .hint = "OnDevices is the place for ranks on its devices"});
}

RunSummary InProcess::run(const AnyRun& run) const {
  try {
    return std::visit([](const auto& of_type) { return run_ranks(of_type); }, run);
  } catch (const std::bad_alloc&) {  // outside the ranks, whose own have become errors already
    throw MachineError({.where = "ring engine",
                        .expected = "memory for the ranks",
                        .actual = "out of memory",
                        .hint = "Use fewer tokens, heads or ranks"});
  }
}

}  // namespace ringlab::ring
