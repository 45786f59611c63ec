#include "cli/run/job_summary.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "cli/line/text_table.h"
#include "cli/report/human.h"

namespace ringlab::cli {
namespace {

constexpr int kSummaryTag = 1 << 20;  // far from the engine's own

using Wire = std::array<std::int64_t, 12>;

Wire to_wire(const RankSummary& summary) {
  const RankStats& stats = summary.stats;
  std::int64_t pairs = 0;
  for (const Visit& visit : stats.visits) pairs += visit.pairs;
  return {stats.sent_bytes,
          stats.sent_messages,
          stats.received_bytes,
          stats.received_messages,
          stats.peak_bytes,
          stats.peak_kv_bytes,
          pairs,
          std::bit_cast<std::int64_t>(summary.seconds),
          std::bit_cast<std::int64_t>(summary.worst),
          summary.right,
          std::bit_cast<std::int64_t>(summary.clock_uncertainty_s),
          summary.compared};
}

RankSummary from_wire(const Wire& wire) {
  RankSummary summary;
  summary.stats = {.sent_bytes = wire[0],
                   .sent_messages = wire[1],
                   .received_bytes = wire[2],
                   .received_messages = wire[3],
                   .peak_bytes = wire[4],
                   .peak_kv_bytes = wire[5]};
  summary.stats.visits = {{.owner = 0, .hop = 0, .pairs = wire[6]}};
  summary.seconds = std::bit_cast<double>(wire[7]);
  summary.worst = std::bit_cast<double>(wire[8]);
  summary.right = wire[9] != 0;
  summary.clock_uncertainty_s = std::bit_cast<double>(wire[10]);
  summary.compared = wire[11];
  return summary;
}

}  // namespace

std::vector<RankSummary> gather(const RankSummary& mine, Communicator& network) {
  Wire wire = to_wire(mine);
  if (network.rank() != 0) {
    network.wait(network.post_send(0, kSummaryTag, bytes_of(wire.data(), std::ssize(wire))));
    return {};
  }
  std::vector<RankSummary> all = {mine};
  for (int rank = 1; rank < network.ranks(); ++rank) {
    network.wait(
        network.post_receive(rank, kSummaryTag, writable_bytes_of(wire.data(), std::ssize(wire))));
    all.push_back(from_wire(wire));
  }
  return all;
}

bool agree_on_outcome(const std::vector<RankSummary>& all, bool found_right,
                      Communicator& network) {
  std::int64_t right = found_right ? 1 : 0;
  if (network.rank() == 0) {
    for (const RankSummary& summary : all) right &= summary.right ? 1 : 0;
    for (int rank = 1; rank < network.ranks(); ++rank) {
      network.wait(network.post_send(rank, kSummaryTag, bytes_of(&right, 1)));
    }
  } else {
    network.wait(network.post_receive(0, kSummaryTag, writable_bytes_of(&right, 1)));
  }
  return right != 0;
}

Json print_summaries(const std::vector<RankSummary>& all, bool checked, Output& output) {
  TextTable table({{"rank", Align::right},
                   {"time", Align::right},
                   {"sent", Align::right},
                   {"messages", Align::right},
                   {"received", Align::right},
                   {"peak memory", Align::right},
                   {"of it K/V", Align::right},
                   {"pairs computed", Align::right},
                   {checked ? "worst error/bound" : "", Align::right}});
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const RankStats& stats = all[rank].stats;
    const std::int64_t pairs = stats.visits.empty() ? 0 : to_wire(all[rank])[6];
    table.add({fmt::format("{}", rank), report::human_seconds(all[rank].seconds),
               report::human_bytes(stats.sent_bytes), report::human_count(stats.sent_messages),
               report::human_bytes(stats.received_bytes), report::human_bytes(stats.peak_bytes),
               report::human_bytes(stats.peak_kv_bytes), report::human_count(pairs),
               checked ? report::human_ratio(all[rank].worst) : ""});
    ranks.push_back({{"rank", rank},
                     {"seconds", all[rank].seconds},
                     {"sent_bytes", stats.sent_bytes},
                     {"sent_messages", stats.sent_messages},
                     {"received_bytes", stats.received_bytes},
                     {"received_messages", stats.received_messages},
                     {"peak_bytes", stats.peak_bytes},
                     {"peak_kv_bytes", stats.peak_kv_bytes},
                     {"pairs", pairs}});
    if (!checked) continue;
    ranks.back()["worst_ratio"] = json_number(all[rank].worst);
    ranks.back()["compared"] = all[rank].compared;
  }
  output.print("\n{}", table.text());
  return ranks;
}

}  // namespace ringlab::cli
