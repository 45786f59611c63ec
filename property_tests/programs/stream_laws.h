// The groups of laws that check_stream_program() is made of, and what they share.
#pragma once

#include <string>
#include <vector>

#include "optimized/ring/streams/stream_accesses.h"
#include "optimized/ring/streams/stream_clock.h"
#include "optimized/ring/streams/stream_program.h"

namespace ringlab::ring::stream_laws {

using Findings = std::vector<std::string>;

/// Per operation, what has ended when it ends (on a wait: when its stream goes on).
using Clocks = std::vector<StreamClock>;

/// Whether all numbers are in range; the other laws may be looked at only then.
bool check_numbers(const StreamProgram& program, const Schedule& schedule, Findings& findings);
/// Events; returns the clocks that streams and events make.
Clocks check_events(const StreamProgram& program, Findings& findings);
/// Two operations that touch the same slot, one of them writing it, and that neither streams nor
/// events order: by number, as they are issued.
struct Race {
  std::size_t earlier = 0, later = 0;
};
std::vector<Race> races_of(const StreamProgram& program, const Clocks& clocks);
/// Nothing touches a slot at the same time as something that writes it.
void check_races(const StreamProgram& program, const Clocks& clocks, Findings& findings);
/// Slots hold what operations name, and own sums end complete.
void check_contents(const StreamProgram& program, const Schedule& schedule, Findings& findings);
/// What is computed is what the schedule says, where it says so.
void check_work(const StreamProgram& program, const Schedule& schedule, Findings& findings);
/// No copy waits for more computing than it must.
void check_overlap(const StreamProgram& program, const Clocks& clocks, Findings& findings);

}  // namespace ringlab::ring::stream_laws
