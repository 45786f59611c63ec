#include "cli/run/run_pace.h"

#include <cmath>
#include <optional>

#include "cli/report/totals.h"
#include "cli/report/trace/slowness.h"

namespace ringlab::cli {
namespace {

double pairs_per_step(const RankStats& rank) {
  const std::int64_t pairs = report::pairs_of(rank);
  return pairs > 0 ? static_cast<double>(pairs) / static_cast<double>(rank.visits.size()) : 1;
}

/// Each rank's own step times, over its whole run; other ranks have heard of the first steps only.
std::vector<report::StepTimes> own_steps(const std::vector<RankStats>& ranks) {
  std::vector<report::StepTimes> steps(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].heard_step_s.empty()) continue;
    const double mean = ranks[r].heard_step_s[r];
    steps[r] = {.seconds = mean,
                .work = pairs_per_step(ranks[r]),
                .steps = mean > 0 ? std::round(ranks[r].busy_s / mean) : 0};
  }
  return steps;
}

std::vector<report::Link> links_of(const std::vector<RankStats>& ranks) {
  std::vector<report::Link> links;
  for (std::size_t to = 0; to < ranks.size(); ++to) {
    for (const LinkStats& stats : ranks[to].links) {
      links.push_back({.to = static_cast<int>(to),
                       .stats = stats,
                       .sender_busy_s = ranks[static_cast<std::size_t>(stats.from)].busy_s});
    }
  }
  return links;
}

Json known(double seconds) { return std::isnan(seconds) ? Json() : Json(seconds); }

Json steps_json(const std::vector<report::StepTimes>& steps) {
  Json json = Json::array();
  for (const report::StepTimes& rank : steps) json.push_back(known(rank.seconds));
  return json;
}

Json heard_json(const std::vector<RankStats>& ranks) {
  Json json = Json::array();
  if (ranks.empty()) return json;
  for (const double seconds : ranks[0].heard_step_s) json.push_back(known(seconds));
  return json;
}

Json links_json(const std::vector<report::Link>& links) {
  Json json = Json::array();
  for (const report::Link& link : links) {
    json.push_back({{"from", link.stats.from},
                    {"to", link.to},
                    {"received_bytes", link.stats.received_bytes},
                    {"late_seconds", link.stats.late_s},
                    {"transfer_seconds", link.stats.transfer_s}});
  }
  return json;
}

Json straggler_json(const std::optional<report::Slowest>& straggler) {
  if (!straggler) return {};
  return {{"rank", straggler->rank},
          {"factor", straggler->factor},
          {"step_seconds", straggler->seconds},
          {"others_step_seconds", straggler->others_s},
          {"judged_by", "mean step without waiting, against the median of the others"}};
}

Json slow_link_json(const std::optional<report::SlowLink>& slow) {
  if (!slow) return {};
  const double others = slow->others_bytes_per_s;
  return {{"from", slow->from},
          {"to", slow->to},
          {"waited_seconds", slow->waited_s},
          {"bytes_per_second", slow->bytes_per_s},
          {"others_bytes_per_second", std::isinf(others) ? Json() : Json(others)}};
}

}  // namespace

Json print_pace(const std::vector<RankStats>& ranks, double seconds, WaitsAre waits,
                Output& output) {
  const std::vector<report::StepTimes> steps = own_steps(ranks);
  const std::vector<report::Link> links = links_of(ranks);
  const double least_cost = report::least_cost_s(seconds);
  const auto straggler = report::find_straggler(steps, least_cost);
  const auto slow = waits == WaitsAre::simulated ? std::optional<report::SlowLink>()
                                                 : report::find_slow_link(links, least_cost);
  if (straggler) output.print("straggler  {}\n", report::straggler_sentence(*straggler));
  if (slow) output.print("slow link  {}\n", report::slow_link_sentence(*slow));
  return {{"step_seconds", steps_json(steps)},
          {"heard_step_seconds", heard_json(ranks)},
          {"straggler", straggler_json(straggler)},
          {"links", links_json(links)},
          {"slow_link", slow_link_json(slow)}};
}

}  // namespace ringlab::cli
