// The costs of a schedule, counted from its operations.
#include <algorithm>
#include <map>
#include <utility>

#include "reference/core/schedule/schedule_costs.h"

namespace ringlab {
namespace {

/// Who sends the chunk of an owner to a rank: (rank, owner) → sender.
using Senders = std::map<std::pair<int, int>, int>;

ChunkTraffic* traffic_of(RankCosts& costs, Action action) {
  switch (action) {
    case Action::post_send:
      return &costs.kv_sent;
    case Action::post_receive:
      return &costs.kv_received;
    case Action::post_send_gradient:
      return &costs.gradients_sent;
    case Action::post_receive_gradient:
      return &costs.gradients_received;
    default:
      return nullptr;
  }
}

RankCosts count_rank(const RankSchedule& program, const std::vector<std::int64_t>& tokens) {
  RankCosts costs{.kv_sent = {},
                  .kv_received = {},
                  .gradients_sent = {},
                  .gradients_received = {},
                  .slots = program.slots,
                  .gradient_slots = program.gradient_slots};
  for (const Operation& operation : program.operations) {
    ChunkTraffic* traffic = traffic_of(costs, operation.action);
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
      if (operation.action != Action::post_receive) continue;
      senders[{rank, operation.owner}] = operation.peer;
    }
  }
  costs.hops = longest_way(senders);
  return costs;
}

}  // namespace ringlab
