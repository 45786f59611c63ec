// Mistakes that show in what ranks asked of their network, whatever numbers came out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "optimized/transport/call_record.h"
#include "property_tests/diagnosis/diagnosis.h"

namespace ringlab::verify {

/// A mistake, and where it was seen first.
struct EventFinding {
  Suspect suspect;
  std::string where;         ///< "rank 1, step 2: …"
  int rank = -1, step = -1;  ///< whose call it is, and how many blocks it had computed before it;
                             ///< -1: on the way back
};

/// The first thing in the program order of a rank that no right program does; empty for right ones.
std::optional<EventFinding> first_event_mistake(const std::vector<RankCalls>& ranks);

/// Runs the cases with simulated messages, until one shows a mistake.
std::optional<EventFinding> found_by_events(const Subject& subject, const std::vector<Case>& cases);

std::vector<Suspect> event_suspects();

}  // namespace ringlab::verify
