#include "reference/model/job.h"

#include <cmath>

#include "reference/core/layout.h"

namespace ringlab::model {
namespace {

void add(const RankTimes& part, double begin, RankTimes& sum) {
  sum.compute_s += part.compute_s;
  sum.add_s += part.add_s;
  sum.wait_s += part.wait_s;
  sum.incoming_s += part.incoming_s;
  sum.end_s = begin + part.end_s;
}

void add(const Simulation& pass, JobTimes& times) {
  const std::int64_t begin_ns = std::llround(times.seconds * 1e9);
  times.ranks.resize(pass.ranks.size());
  for (std::size_t rank = 0; rank < pass.ranks.size(); ++rank) {
    add(pass.ranks[rank], times.seconds, times.ranks[rank]);
    for (TraceEvent event : pass.events[rank]) {
      event.begin_ns += begin_ns;
      event.end_ns += begin_ns;
      times.events.push_back(event);
    }
  }
  times.seconds += pass.seconds;
}

/// In striped layouts every block is next to the diagonal, in the others a rank's own one.
CutBlocks cut_blocks(const Job& job, std::int64_t pairs) {
  const Shape& s = job.problem.shape;
  if (pairs == s.q_tokens * s.kv_tokens) return CutBlocks::none;
  return job.options.layout == LayoutKind::striped ? CutBlocks::all : CutBlocks::own;
}

/// All passes on one device; `pairs` are all that the mask allows, which take long to count.
double alone_seconds(const Job& job, std::int64_t pairs, const Machine& machine) {
  const auto tokens = static_cast<double>(job.problem.shape.kv_tokens);
  double seconds = 0;
  for (const Pass pass : job.passes) {
    const Work work = work_of(job.problem, pass, job.options.wire);
    seconds += one_device_seconds(static_cast<double>(pairs), tokens, work, cut_blocks(job, pairs),
                                  machine);
  }
  return seconds;
}

}  // namespace

JobNeeds needs_of(const Problem& problem, const RunOptions& options) {
  const Layout queries = make_layout(options, problem.shape.q_tokens, options.q_layout);
  const Layout keys = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  JobNeeds needs{.need = need_matrix(problem.mask, queries, keys), .tokens = {}};
  for (int rank = 0; rank < keys.ranks(); ++rank) {
    needs.tokens.push_back(keys.positions(rank).size());
  }
  return needs;
}

double JobTimes::efficiency() const {
  if (seconds == 0) return 1;
  return one_device_seconds / (seconds * static_cast<double>(ranks.size()));
}

double one_device_seconds(const Job& job, const Machine& machine) {
  return alone_seconds(job, job.problem.mask.count_all(), machine);
}

JobTimes simulate_job(const Job& job, const JobNeeds& needs, const Machine& machine,
                      const Disturbance& disturbance) {
  const std::int64_t pairs = job.problem.mask.count_all();
  JobTimes times{.one_device_seconds = alone_seconds(job, pairs, machine)};
  for (const Pass pass : job.passes) {
    const Schedule schedule = build_schedule(schedule_spec(job.options), needs.need, pass);
    const Load load{.schedule = schedule,
                    .need = needs.need,
                    .tokens = needs.tokens,
                    .work = work_of(job.problem, pass, job.options.wire),
                    .cut = cut_blocks(job, pairs)};
    add(simulate(load, machine, disturbance), times);
  }
  return times;
}

}  // namespace ringlab::model
