// Closed forms of a run of the engine, known before it: traffic, memory, work and accuracy.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// Bytes and messages that one rank on processors moves and holds; RankStats equal them exactly.
struct EngineCosts {
  std::int64_t sent_bytes = 0;
  std::int64_t sent_messages = 0;
  std::int64_t received_bytes = 0;
  std::int64_t received_messages = 0;
  std::int64_t peak_kv_bytes = 0;  ///< of the own chunk, which is in no slot, and all slots
  std::int64_t peak_bytes = 0;     ///< state and slots: all that is held besides inputs and outputs
};
EngineCosts engine_costs(const Problem& problem, const RunOptions& options, int rank,
                         Pass last_pass);
/// Costs of all ranks, in little more time than of one.
std::vector<EngineCosts> engine_costs(const Problem& problem, const RunOptions& options,
                                      Pass last_pass);
/// Costs of all ranks for a known need_matrix() of the problem's mask and layouts, which would take
/// most of the time.
std::vector<EngineCosts> engine_costs(const Problem& problem, const RunOptions& options,
                                      const NeedMatrix& need, Pass last_pass);

/// Matrix products that a pair takes part in: Q·K and P·V; Q·K, dO·V, dQ, dK and dV.
inline constexpr std::int64_t kForwardProducts = 2, kBackwardProducts = 5;
/// The work of each rank: matrix products of all its (query, key) pairs and heads.
/// EngineParts::work_done is told of them.
std::vector<std::int64_t> engine_work(const Problem& problem, const RunOptions& options,
                                      Pass last_pass);

/// The accuracy that the engine promises for this problem on processors: one rescale per tile at
/// most, state carried, and for lossy wire formats the rounding of K and V.
NumericsProfile engine_profile(const Problem& problem, const RunOptions& options);

}  // namespace ringlab::ring
