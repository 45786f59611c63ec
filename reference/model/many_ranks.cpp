#include "reference/model/many_ranks.h"

#include <algorithm>

namespace ringlab::model {
namespace {

constexpr int kNodes = 8;
constexpr int kLeastExecuted = 32;  // where nodes are small

double executed(const Job& job, const Machine& machine) {
  return simulate_job(job, needs_of(job.problem, job.options), machine).seconds;
}

}  // namespace

int most_executed(const Machine& machine) {
  return std::max(kNodes * machine.node_ranks, kLeastExecuted);
}

bool has_any_length(const Job& job) {
  const Shape& s = job.problem.shape;
  return s.q_tokens == s.kv_tokens &&
         std::ranges::all_of(job.problem.mask.terms(), [](const MaskTerm& term) {
           return std::holds_alternative<CausalMask>(term) ||
                  std::holds_alternative<WindowMask>(term);
         });
}

bool is_continued(const Job& job, const Machine& machine) {
  return job.options.ranks > most_executed(machine) && has_any_length(job);
}

Job with_ranks(const Job& job, int ranks) {
  Job other = job;
  Shape& shape = other.problem.shape;
  const std::int64_t before = job.options.ranks;
  const std::int64_t tokens = (shape.q_tokens + before - 1) / before * ranks;
  shape.q_tokens = shape.kv_tokens = tokens;
  other.problem.mask = parse_mask(job.problem.mask.text()).bind(tokens, tokens);
  other.options.ranks = ranks;
  return other;
}

double seconds_on_line(int ranks, int most, const std::function<double(int)>& seconds_of) {
  if (ranks <= most) return seconds_of(ranks);
  const int half = most / 2;
  const double of_most = seconds_of(most);
  return of_most + (ranks - most) * (of_most - seconds_of(half)) / (most - half);
}

double seconds_of_many(const Job& job, const Machine& machine) {
  if (!is_continued(job, machine)) return executed(job, machine);
  const int most = most_executed(machine);
  const Job many = with_ranks(job, most);
  const JobNeeds needs = needs_of(many.problem, many.options);
  if (needs.need.pairs(most - 1, 0) == 0) {  // a window: more ranks add nothing
    return simulate_job(many, needs, machine).seconds;
  }
  return seconds_on_line(job.options.ranks, most,
                         [&](int ranks) { return executed(with_ranks(job, ranks), machine); });
}

JobTimes times_of_many(const Job& job, const Machine& machine) {
  JobTimes times{.seconds = seconds_of_many(job, machine),
                 .one_device_seconds = one_device_seconds(job, machine)};
  times.ranks.resize(static_cast<std::size_t>(job.options.ranks));
  return times;
}

}  // namespace ringlab::model
