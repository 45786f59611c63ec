// All ranks agree on the problem and the options before any data moves.
#pragma once

#include <cstdint>
#include <string>

#include "optimized/transport/communicator.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// Everything that has to be the same on all ranks, in words: shapes, dtype, scale, mask (with the
/// bits of a matrix), modifiers, layouts, schedule, wire, integrity, tiles, gradients wanted,
/// a graph or not, format version.
std::string agreement_text(const Problem& problem, const RunOptions& options, Pass last_pass);

/// Exchanges the hash of `text` with all ranks in ceil(log2 P) rounds (dissemination: Hensgen,
/// Finkel & Manber 1988) and returns it. RankError on every rank, naming two ranks that differ,
/// when they do not agree.
std::uint64_t agree(const std::string& text, Communicator& network);

/// Messages that agree() sends; as many are received.
int agreement_messages(int ranks);
inline constexpr std::int64_t kAgreementBytes = 24;  ///< of each of them
inline constexpr int kAgreementTags = 16;            ///< tags 0 … 15 are its own

}  // namespace ringlab::ring
