// Costs of a schedule, chunks sent and held: closed forms, and counts of its operations.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/schedule/schedule.h"

namespace ringlab {

/// Chunks of K and V, or sums of dK and dV; each is one message.
struct ChunkTraffic {
  std::int64_t chunks = 0;
  std::int64_t tokens = 0;
  friend bool operator==(const ChunkTraffic&, const ChunkTraffic&) = default;
};

struct RankCosts {
  ChunkTraffic kv_sent, kv_received;
  ChunkTraffic gradients_sent, gradients_received;  ///< none in the forward pass
  int slots = 0;                                    ///< K/V chunks held besides the own one
  int gradient_slots = 0;                           ///< sums of dK, dV held besides the own one
  friend bool operator==(const RankCosts&, const RankCosts&) = default;
};

struct ScheduleCosts {
  std::vector<RankCosts> ranks;
  /// The largest number of messages by which a chunk of K and V gets from its owner to a rank: 1
  /// when all come straight from their owners, P-1 in a full ring, 0 when nothing travels.
  int hops = 0;
  friend bool operator==(const ScheduleCosts&, const ScheduleCosts&) = default;
};

/// Costs of build_schedule(spec, need, pass), without building it. `tokens` has the keys of each
/// owner, one number per rank of `need`. O(ranks²).
/// Usage error when spec is not valid or `tokens` has another length.
ScheduleCosts schedule_costs(const ScheduleSpec& spec, const NeedMatrix& need, Pass pass,
                             const std::vector<std::int64_t>& tokens);

/// Counts the costs of a schedule, which must obey the laws of check_schedule().
ScheduleCosts count_schedule(const Schedule& schedule, const std::vector<std::int64_t>& tokens);

}  // namespace ringlab
