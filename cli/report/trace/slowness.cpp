#include "cli/report/trace/slowness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cli/report/human.h"

namespace ringlab::report {
namespace {

/// The lower median; nothing for no values.
std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median of all values but `one`, without NaN.
std::optional<double> median_of_others(std::span<const double> values, std::size_t one) {
  std::vector<double> others;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != one && !std::isnan(values[i])) others.push_back(values[i]);
  }
  return median(std::move(others));
}

std::vector<double> seconds_of(std::span<const StepTimes> ranks) {
  std::vector<double> seconds;
  for (const StepTimes& rank : ranks) seconds.push_back(rank.seconds);
  return seconds;
}

std::vector<double> seconds_per_work(std::span<const StepTimes> ranks) {
  std::vector<double> rates;
  for (const StepTimes& rank : ranks) rates.push_back(rank.seconds / rank.work);
  return rates;
}

/// The index of the largest value, NaN counting as less than any. `values` is not empty.
std::size_t index_of_largest(std::span<const double> values) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[largest] || std::isnan(values[largest])) largest = i;
  }
  return largest;
}

double rate(double bytes, double seconds) {
  return seconds > 0 ? bytes / seconds : std::numeric_limits<double>::infinity();
}

std::string rate_text(double bytes_per_s) { return human_bytes(std::llround(bytes_per_s)) + "/s"; }

}  // namespace

double least_cost_s(double run_seconds) { return std::max(0.25, 0.1 * run_seconds); }

std::optional<Slowest> slowest_rank(std::span<const StepTimes> ranks) {
  if (ranks.empty()) return {};
  const std::vector<double> seconds = seconds_of(ranks);
  const std::size_t slowest = index_of_largest(seconds);
  const std::optional<double> others = median_of_others(seconds, slowest);
  if (!others || *others <= 0) return {};
  return Slowest{.rank = static_cast<int>(slowest),
                 .seconds = seconds[slowest],
                 .others_s = *others,
                 .factor = seconds[slowest] / *others};
}

std::optional<Slowest> find_straggler(std::span<const StepTimes> ranks, double least_cost_s) {
  const std::optional<Slowest> slowest = slowest_rank(ranks);
  if (!slowest || !(slowest->factor > kStragglerFactor)) return {};
  const std::vector<double> rates = seconds_per_work(ranks);
  const auto rank = static_cast<std::size_t>(slowest->rank);
  if ((slowest->seconds - slowest->others_s) * ranks[rank].steps < least_cost_s) return {};
  const double others = median_of_others(rates, rank).value_or(0);
  if (!(rates[rank] > kStragglerFactor * others)) return {};
  return slowest;
}

double Link::unexplained_s() const { return std::max(0.0, stats.transfer_s - sender_busy_s); }

std::optional<SlowLink> find_slow_link(std::span<const Link> links, double least_cost_s) {
  std::vector<double> seconds_per_byte;
  for (const Link& link : links) {
    seconds_per_byte.push_back(link.stats.received_bytes > 0
                                   ? link.unexplained_s() /
                                         static_cast<double>(link.stats.received_bytes)
                                   : std::numeric_limits<double>::quiet_NaN());
  }
  if (links.empty()) return {};
  const std::size_t worst = index_of_largest(seconds_per_byte);
  const std::optional<double> others = median_of_others(seconds_per_byte, worst);
  if (!others || !(seconds_per_byte[worst] > kSlowLinkFactor * *others)) return {};
  const Link& link = links[worst];
  const double waited_s = link.unexplained_s();
  if (waited_s < least_cost_s) return {};
  return SlowLink{.from = link.stats.from,
                  .to = link.to,
                  .waited_s = waited_s,
                  .bytes_per_s = rate(static_cast<double>(link.stats.received_bytes), waited_s),
                  .others_bytes_per_s = rate(1, *others)};
}

std::string straggler_sentence(const Slowest& straggler) {
  return fmt::format("rank {}: {} a step, {:.1f} times the median of the others ({})",
                     straggler.rank, human_seconds(straggler.seconds), straggler.factor,
                     human_seconds(straggler.others_s));
}

std::string slow_link_sentence(const SlowLink& link) {
  const std::string others = std::isinf(link.others_bytes_per_s)
                                 ? "nobody waited for the others"
                                 : "the others " + rate_text(link.others_bytes_per_s);
  return fmt::format("rank {} to rank {}: {} in {} of waiting, {}", link.from, link.to,
                     rate_text(link.bytes_per_s), human_seconds(link.waited_s), others);
}

}  // namespace ringlab::report
