#include "cli/run/run_pace.h"

#include <cmath>
#include <limits>
#include <optional>

#include "cli/report/trace/slowness.h"

namespace ringlab::cli {
namespace {

constexpr int kPaceTag = (1 << 20) + 4;
// A message of fixed length: three numbers of the rank, then four for every rank it may know of.
constexpr std::size_t kOwn = 3, kPerRank = 4;

std::vector<double> packed(const RankPace& pace, int ranks) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> numbers(kOwn + kPerRank * static_cast<std::size_t>(ranks), nothing);
  numbers[0] = pace.busy_s;
  numbers[1] = pace.pairs_per_step;
  numbers[2] = static_cast<double>(pace.heard_step_s.size());
  for (std::size_t r = 0; r < pace.heard_step_s.size(); ++r) {
    numbers[kOwn + kPerRank * r] = pace.heard_step_s[r];
  }
  for (const LinkStats& link : pace.links) {
    double* const at = &numbers[kOwn + kPerRank * static_cast<std::size_t>(link.from)];
    at[1] = static_cast<double>(link.received_bytes);
    at[2] = link.late_s;
    at[3] = link.transfer_s;
  }
  return numbers;
}

RankPace unpacked(const std::vector<double>& numbers) {
  RankPace pace{
      .heard_step_s = {}, .busy_s = numbers[0], .pairs_per_step = numbers[1], .links = {}};
  for (std::size_t r = 0; kOwn + kPerRank * r < numbers.size(); ++r) {
    const double* const at = &numbers[kOwn + kPerRank * r];
    if (static_cast<double>(r) < numbers[2]) pace.heard_step_s.push_back(at[0]);
    if (std::isnan(at[1])) continue;
    pace.links.push_back({.from = static_cast<int>(r),
                          .received_bytes = std::llround(at[1]),
                          .late_s = at[2],
                          .transfer_s = at[3]});
  }
  return pace;
}

/// What every rank says of itself: its whole run, where others have heard of the first steps only.
std::vector<report::StepTimes> own_steps(const std::vector<RankPace>& ranks) {
  std::vector<report::StepTimes> steps(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].heard_step_s.empty()) continue;
    const double mean = ranks[r].heard_step_s[r];
    steps[r] = {.seconds = mean,
                .work = ranks[r].pairs_per_step,
                .steps = mean > 0 ? std::round(ranks[r].busy_s / mean) : 0};
  }
  return steps;
}

std::vector<report::Link> links_of(const std::vector<RankPace>& ranks) {
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

Json heard_json(const std::vector<RankPace>& ranks) {
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

RankPace pace_of(const RankStats& stats) {
  RankPace pace{.heard_step_s = stats.heard_step_s, .busy_s = stats.busy_s, .links = stats.links};
  std::int64_t pairs = 0;
  for (const Visit& visit : stats.visits) pairs += visit.pairs;
  if (pairs > 0) {
    pace.pairs_per_step = static_cast<double>(pairs) / static_cast<double>(stats.visits.size());
  }
  return pace;
}

std::vector<RankPace> gather_paces(const RankPace& mine, Communicator& network) {
  std::vector<double> numbers = packed(mine, network.ranks());
  if (network.rank() != 0) {
    network.wait(network.post_send(0, kPaceTag, bytes_of(numbers.data(), std::ssize(numbers))));
    return {};
  }
  std::vector<RankPace> all = {mine};
  for (int rank = 1; rank < network.ranks(); ++rank) {
    network.wait(network.post_receive(rank, kPaceTag,
                                      writable_bytes_of(numbers.data(), std::ssize(numbers))));
    all.push_back(unpacked(numbers));
  }
  return all;
}

Json print_pace(const std::vector<RankPace>& ranks, double seconds, WaitsAre waits,
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
