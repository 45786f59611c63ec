// Mistakes that show in the calls of ranks to their network, whatever numbers came out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "optimized/transport/call_record.h"
#include "property_tests/diagnosis/diagnosis.h"

namespace ringlab::verify {

/// A mistake, and the place where it was seen first.
struct EventFinding {
  Suspect suspect;
  std::string where;         ///< "rank 1, step 2: …"
  int rank = -1, step = -1;  ///< rank of the call, and the blocks that it had computed before it;
                             ///< -1: in the backward pass
  bool waits_for_ever = false;  ///< a rank waits in vain, perhaps because of another mistake
};

/// The first call in a rank's program order that no right program makes; empty for right programs.
std::optional<EventFinding> first_event_mistake(const std::vector<RankCalls>& ranks);

/// Runs the cases with simulated messages, until one shows a mistake.
std::optional<EventFinding> found_by_events(const Subject& subject, const std::vector<Case>& cases);

std::vector<Suspect> event_suspects();

}  // namespace ringlab::verify
