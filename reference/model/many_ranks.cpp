#include "reference/model/many_ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ringlab::model {
namespace {

constexpr int kNodes = 8;
constexpr int kLeastExecuted = 32;  // where nodes are small

double executed(const Job& job, const Machine& machine) {
  return simulate_job(job, needs_of(job.problem, job.options), machine).seconds;
}

bool has_nodes(const Job& job) { return schedule_traits(job.options.schedule).has_nodes; }

bool has_window(const Job& job) {
  return std::ranges::any_of(job.problem.mask.terms(), [](const MaskTerm& term) {
    return std::holds_alternative<WindowMask>(term);
  });
}

RankLine line_by_nodes(int ranks, int node_ranks) {
  const int most = std::max(kNodes * node_ranks, kLeastExecuted);
  if (ranks <= most) return {most / 2, most};
  const int missing = (node_ranks - (ranks - most) % node_ranks) % node_ranks;  // in the last node
  return {most - missing - most / 2 / node_ranks * node_ranks, most - missing};
}

/// The number of contiguous chunks that one chunk meets in a window, its own among them.
int ranks_in_reach(const Job& job) {
  const int ranks = job.options.ranks;
  const Layout layout = make_layout(job.options, job.problem.shape.q_tokens, {});
  const Mask& mask = job.problem.mask;
  const auto first_beyond = [&](auto&& sees) {
    int least = 1, beyond = ranks;
    while (least < beyond) {
      const int middle = (least + beyond) / 2;
      if (sees(middle)) {
        least = middle + 1;
      } else {
        beyond = middle;
      }
    }
    return beyond;
  };
  const Positions first = layout.positions(0);
  const int before =
      first_beyond([&](int d) { return mask.count(layout.positions(d), first) > 0; });
  const int behind =
      first_beyond([&](int d) { return mask.count(first, layout.positions(d)) > 0; });
  return before + behind - 1;
}

}  // namespace

RankLine line_of(const Job& job, const Machine& machine) {
  const int node_ranks =
      has_nodes(job) ? std::lcm(machine.node_ranks, job.options.node_ranks) : machine.node_ranks;
  return line_by_nodes(job.options.ranks, node_ranks);
}

RankLine line_of(int ranks, const Machine& machine) {
  return line_by_nodes(ranks, machine.node_ranks);
}

double on_line(int ranks, const RankLine& line, const std::function<double(int)>& cost_of) {
  if (ranks <= line.most) return cost_of(ranks);
  const double of_most = cost_of(line.most);
  return of_most + (ranks - line.most) * (of_most - cost_of(line.half)) / (line.most - line.half);
}

bool has_any_length(const Job& job) {
  const Shape& s = job.problem.shape;
  return s.q_tokens == s.kv_tokens &&
         std::ranges::all_of(job.problem.mask.terms(), [](const MaskTerm& term) {
           return std::holds_alternative<CausalMask>(term) ||
                  std::holds_alternative<WindowMask>(term);
         });
}

bool has_line(const Job& job) {
  if (!has_any_length(job) || schedule_traits(job.options.schedule).holds_all) return false;
  return !has_window(job) || job.options.layout == LayoutKind::contiguous;
}

bool is_continued(const Job& job, const Machine& machine) {
  return has_line(job) && job.options.ranks > line_of(job, machine).most;
}

Continuation continuation_of(const Job& job, const Machine& machine) {
  const RankLine line = line_of(job, machine);
  const int ranks = job.options.ranks;
  if (!has_window(job)) return {line, ranks};
  const int reach = ranks_in_reach(job);
  const int enough = std::min(ranks, std::max(reach + line.most / 2, line.most));
  if (enough <= kQuicklyExecuted) return {{0, enough}, enough};
  return {line, std::min(ranks, reach)};
}

// Tokens in proportion, not by the longest chunk: as large a share of ranks has a token less.
Job with_ranks(const Job& job, int ranks) {
  Job other = job;
  Shape& shape = other.problem.shape;
  const std::int64_t before = job.options.ranks;
  const std::int64_t tokens = (shape.q_tokens * ranks + before / 2) / before;
  shape.q_tokens = shape.kv_tokens = std::max<std::int64_t>(tokens, 1);
  other.problem.mask = parse_mask(job.problem.mask.text()).bind(shape.q_tokens, shape.kv_tokens);
  other.options.ranks = ranks;
  return other;
}

namespace {

/// A cost of a job that is_continued(), given that of the same with fewer ranks.
double continued(const Job& job, const Machine& machine,
                 const std::function<double(const Job&)>& cost) {
  const auto cost_of = [&](int ranks) { return cost(with_ranks(job, ranks)); };
  const Continuation c = continuation_of(job, machine);
  return c.line.half == 0 ? cost_of(c.line.most) : on_line(c.last, c.line, cost_of);
}

}  // namespace

double seconds_of_many(const Job& job, const Machine& machine) {
  if (!is_continued(job, machine)) return executed(job, machine);
  return continued(job, machine, [&](const Job& few) { return executed(few, machine); });
}

std::int64_t bytes_of_many(const Job& job, const Machine& machine, const MemoryOf& memory_of) {
  const auto bytes_of = [&](const Job& one) {
    return memory_of(one, needs_of(one.problem, one.options));
  };
  if (!is_continued(job, machine)) return bytes_of(job);
  if (!has_nodes(job)) return bytes_of(with_ranks(job, line_of(job, machine).most));
  // Going back, a rank holds sums of every node that its own chunk goes to.
  return std::llround(
      continued(job, machine, [&](const Job& few) { return static_cast<double>(bytes_of(few)); }));
}

JobTimes times_of_many(const Job& job, const Machine& machine) {
  JobTimes times{.seconds = seconds_of_many(job, machine),
                 .one_device_seconds = one_device_seconds(job, machine)};
  times.ranks.resize(static_cast<std::size_t>(job.options.ranks));
  return times;
}

}  // namespace ringlab::model
