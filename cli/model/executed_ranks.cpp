#include "cli/model/executed_ranks.h"

#include <fmt/format.h>

#include "reference/core/error.h"
#include "reference/core/options/option_table.h"
#include "reference/model/many_ranks.h"

namespace ringlab::cli {
namespace {

/// A reason for which all ranks have to be executed, and what to do about it.
struct Refusal {
  std::string why = {};
  std::string hint = {};
};

Refusal refusal_of_line(const model::Job& job, const model::Machine& machine,
                        const std::vector<std::string>& by_rank) {
  const int most = model::line_of(job, machine).most;
  if (most > run_option("ranks").most) {
    return {"nodes of so many ranks", "Give --node-ranks, 512 at most."};
  }
  if (!model::has_any_length(job)) {
    return {"such a mask", "Full and causal masks and windows are weighed for more."};
  }
  if (schedule_traits(job.options.schedule).holds_all) {
    return {"schedules that hold all chunks", "A ring holds as much with any number of ranks."};
  }
  if (!model::has_line(job)) {
    return {"windows on such a layout", "Windows are best on --layout contiguous."};
  }
  if (by_rank.empty()) return {};
  const std::int64_t chunk =
      (job.problem.shape.q_tokens + job.options.ranks - 1) / job.options.ranks;
  return {by_rank.front(), fmt::format("Chunks as long on fewer ranks: --ranks {} --tokens {}.",
                                       most, most * chunk)};
}

}  // namespace

ExecutedRanks executed_ranks(const model::Job& job, const model::Machine& machine,
                             const std::vector<std::string>& by_rank) {
  const int ranks = job.options.ranks;
  const Refusal refusal = refusal_of_line(job, machine, by_rank);
  if (refusal.why.empty() && ranks > model::kQuicklyExecuted && model::is_continued(job, machine)) {
    const model::Continuation found = model::continuation_of(job, machine);
    return {model::with_ranks(job, found.line.most), false, found.line.half, found.last};
  }
  const double most = run_option("ranks").most;
  if (ranks > most) {
    throw_usage_error({"--ranks", fmt::format("at most {:.0f} with {}", most, refusal.why),
                       fmt::format("{}", ranks), refusal.hint});
  }
  return {job};
}

}  // namespace ringlab::cli
