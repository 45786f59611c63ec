// All ranks agree on everything that decides the result, before any data moves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optimized/transport/communicator.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// Something that has to be the same on all ranks: "mask", "causal". A name occurs once.
struct Fact {
  std::string name, value;
};
using Facts = std::vector<Fact>;

/// The facts of a run of the engine: shapes, dtype, scale, mask (with the bits of a matrix),
/// modifiers, layouts, every option of a run but the number of threads and the timeout, gradients
/// wanted, version of the messages.
Facts facts_of(const Problem& problem, const RunOptions& options, Pass last_pass);

/// Exchanges the hash of `facts` with all ranks in ceil(log2 P) rounds (dissemination: Hensgen,
/// Finkel & Manber 1988) and returns it. If hashes differ, the ranks tell each other their facts:
/// RankError on every rank, naming the facts that differ, with their values and ranks.
std::uint64_t agree(const Facts& facts, Communicator& network);
/// True on every rank when all ranks give the same text; as many rounds as agree().
bool all_say(const std::string& text, Communicator& network);

/// Messages that agree() sends when all do; as many are received.
int agreement_messages(int ranks);
inline constexpr std::int64_t kAgreementBytes = 24;  ///< of each of them
inline constexpr int kAgreementTags = 16;            ///< tags 0 … 15 are its own

}  // namespace ringlab::ring
