#include "cli/report/trace/trace_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "cli/report/human.h"
#include "cli/report/trace/slowness.h"

namespace ringlab::report {
namespace {

/// Begin and end, disjoint and ascending once united.
using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

Intervals united(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end());
  Intervals result;
  for (const auto& [begin, end] : intervals) {
    if (!result.empty() && begin <= result.back().second) {
      result.back().second = std::max(result.back().second, end);
    } else {
      result.emplace_back(begin, end);
    }
  }
  return result;
}

std::int64_t length(const Intervals& intervals) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : intervals) sum += end - begin;
  return sum;
}

/// Length of the intersection of two unions.
std::int64_t common_length(const Intervals& a, const Intervals& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t begin = std::max(a[i].first, b[j].first);
    const std::int64_t end = std::min(a[i].second, b[j].second);
    sum += std::max<std::int64_t>(end - begin, 0);
    a[i].second < b[j].second ? ++i : ++j;
  }
  return sum;
}

/// The events of one rank, sorted by their meaning.
struct Activity {
  Intervals compute, in_flight, wait;
  std::vector<std::int64_t> blocks;
  std::int64_t bytes_received = 0;

  void add(const TraceEvent& event) {
    const std::pair interval{event.begin_ns, event.end_ns};
    switch (event.kind) {
      case TraceKind::compute:
        blocks.push_back(event.end_ns - event.begin_ns);
        [[fallthrough]];
      case TraceKind::add:
        compute.push_back(interval);
        break;
      case TraceKind::receive:
        bytes_received += event.bytes;
        [[fallthrough]];
      case TraceKind::send:
        in_flight.push_back(interval);
        break;
      case TraceKind::wait:
        wait.push_back(interval);
        break;
    }
  }
};

RankSummary summary_of(int rank, const Activity& activity, std::int64_t span_ns) {
  const Intervals compute = united(activity.compute), in_flight = united(activity.in_flight);
  return {.rank = rank,
          .span_ns = span_ns,
          .compute_ns = length(compute),
          .in_flight_ns = length(in_flight),
          .covered_ns = common_length(compute, in_flight),
          .wait_ns = length(united(activity.wait)),
          .bytes_received = activity.bytes_received,
          .block = spread_of(activity.blocks)};
}

std::vector<LinkSummary> links_of(const Trace& trace) {
  std::map<std::pair<int, int>, std::pair<std::vector<std::int64_t>, std::int64_t>> receives;
  for (const TraceEvent& event : trace) {
    if (event.kind != TraceKind::receive) continue;
    auto& [durations, bytes] = receives[{event.peer, event.rank}];
    durations.push_back(event.end_ns - event.begin_ns);
    bytes += event.bytes;
  }
  std::vector<LinkSummary> links;
  for (const auto& [ends, found] : receives) {
    links.push_back({ends.first, ends.second, spread_of(found.first), found.second});
  }
  return links;
}

void find_straggler(TraceSummary& summary) {
  std::vector<StepTimes> blocks;
  for (const RankSummary& rank : summary.ranks) {
    blocks.push_back({.seconds = rank.block.count == 0
                                     ? std::numeric_limits<double>::quiet_NaN()
                                     : static_cast<double>(rank.block.p50_ns) * 1e-9});
  }
  if (const auto slowest = slowest_rank(blocks)) summary.straggler_ratio = slowest->factor;
  if (const auto straggler = find_straggler(blocks, 0)) summary.straggler = straggler->rank;
}

std::string seconds_text(std::int64_t ns) { return human_seconds(static_cast<double>(ns) * 1e-9); }

}  // namespace

Spread spread_of(std::vector<std::int64_t> durations_ns) {
  if (durations_ns.empty()) return {};
  std::sort(durations_ns.begin(), durations_ns.end());
  const auto at = [&](std::size_t percent) {  // the least with that share at or below it
    return durations_ns[(durations_ns.size() * percent + 99) / 100 - 1];
  };
  return {static_cast<std::int64_t>(durations_ns.size()), at(50), at(99)};
}

std::optional<double> RankSummary::overlap() const {
  if (in_flight_ns == 0) return std::nullopt;
  return static_cast<double>(covered_ns) / static_cast<double>(in_flight_ns);
}

double RankSummary::idle() const {
  return span_ns == 0 ? 0 : 1 - static_cast<double>(compute_ns) / static_cast<double>(span_ns);
}

std::optional<double> TraceSummary::overlap() const {
  RankSummary all;
  for (const RankSummary& rank : ranks) {
    all.in_flight_ns += rank.in_flight_ns;
    all.covered_ns += rank.covered_ns;
  }
  return all.overlap();
}

double TraceSummary::idle() const {
  RankSummary all;
  for (const RankSummary& rank : ranks) {
    all.span_ns += rank.span_ns;
    all.compute_ns += rank.compute_ns;
  }
  return all.idle();
}

std::string overlap_text(const std::optional<double>& overlap) {
  return overlap ? human_percent(*overlap) : "none in flight";
}

std::string straggler_text(const TraceSummary& summary) {
  if (!summary.straggler) return "none";
  return fmt::format("rank {}, {:.2f} times the median of the others", *summary.straggler,
                     summary.straggler_ratio);
}

std::string slowest_link_text(const TraceSummary& summary) {
  if (!summary.slowest_link) return "none";
  const LinkSummary& link = summary.links[*summary.slowest_link];
  return fmt::format("rank {} to rank {}, p50 {}, p99 {}", link.from, link.to,
                     seconds_text(link.receive.p50_ns), seconds_text(link.receive.p99_ns));
}

TraceSummary summarize(const Trace& trace) {
  TraceSummary summary;
  if (trace.empty()) return summary;
  std::int64_t begin = trace.front().begin_ns, end = trace.front().end_ns;
  std::vector<Activity> activities(static_cast<std::size_t>(ranks_of(trace)));
  for (const TraceEvent& event : trace) {
    begin = std::min(begin, event.begin_ns);
    end = std::max(end, event.end_ns);
    activities[static_cast<std::size_t>(event.rank)].add(event);
  }
  summary.span_ns = end - begin;
  for (std::size_t r = 0; r < activities.size(); ++r) {
    summary.ranks.push_back(summary_of(static_cast<int>(r), activities[r], summary.span_ns));
  }
  summary.links = links_of(trace);
  find_straggler(summary);
  for (std::size_t i = 0; i < summary.links.size(); ++i) {
    const bool slower =
        !summary.slowest_link ||
        summary.links[i].receive.p50_ns > summary.links[*summary.slowest_link].receive.p50_ns;
    if (slower) summary.slowest_link = i;
  }
  return summary;
}

}  // namespace ringlab::report
