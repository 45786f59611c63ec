// The costs of a schedule, counted from its operations.
#include <algorithm>
#include <map>
#include <utility>

#include "reference/core/schedule/operation_words.h"
#include "reference/core/schedule/schedule_costs.h"

namespace ringlab {
namespace {

/// The senders of owners' chunks to ranks: (rank, owner) → sender.
using Senders = std::map<std::pair<int, int>, int>;

/// Messages are counted where they are posted.
ChunkTraffic* traffic_of(RankCosts& costs, const Operation& operation) {
  const bool gradients = concerns_gradients(operation);
  switch (operation.verb) {
    case Verb::post_send:
      return gradients ? &costs.gradients_sent : &costs.kv_sent;
    case Verb::post_receive:
      return gradients ? &costs.gradients_received : &costs.kv_received;
    case Verb::wait_send:
    case Verb::wait_receive:
    case Verb::compute:
    case Verb::add:
      break;
  }
  return nullptr;
}

RankCosts count_rank(const RankSchedule& program, const std::vector<std::int64_t>& tokens) {
  RankCosts costs{.kv_sent = {},
                  .kv_received = {},
                  .gradients_sent = {},
                  .gradients_received = {},
                  .slots = program.slots,
                  .gradient_slots = program.gradient_slots};
  for (const Operation& operation : program.operations) {
    ChunkTraffic* traffic = traffic_of(costs, operation);
    if (traffic == nullptr) continue;
    ++traffic->chunks;
    traffic->tokens += tokens[static_cast<std::size_t>(operation.owner)];
  }
  return costs;
}

int longest_way(const Senders& senders) {
  int longest = 0;
  for (const auto& [arrival, sender] : senders) {
    int hops = 1;
    auto before = senders.find({sender, arrival.second});
    for (; before != senders.end(); before = senders.find({before->second, arrival.second})) ++hops;
    longest = std::max(longest, hops);
  }
  return longest;
}

}  // namespace

ScheduleCosts count_schedule(const Schedule& schedule, const std::vector<std::int64_t>& tokens) {
  ScheduleCosts costs;
  Senders senders;
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
    const RankSchedule& program = schedule.ranks[static_cast<std::size_t>(rank)];
    costs.ranks.push_back(count_rank(program, tokens));
    for (const Operation& operation : program.operations) {
      if (operation.verb != Verb::post_receive || concerns_gradients(operation)) continue;
      senders[{rank, operation.owner}] = operation.peer;
    }
  }
  costs.hops = longest_way(senders);
  return costs;
}

}  // namespace ringlab
