// The groups of laws that check_message_programs() is made of.
#pragma once

#include <vector>

#include "optimized/ring/messages/message_program.h"
#include "property_tests/programs/stream_laws.h"

namespace ringlab::ring::message_laws {

using stream_laws::Findings;

/// Whether ranks, streams and events are in range; the other laws may be looked at only then.
bool check_programs(const std::vector<MessageProgram>& programs, Findings& findings);
/// Events and rounds of one rank, and whether its streams and events order what touches the same
/// slot.
void check_slots(const MessageProgram& program, Findings& findings);
/// Executes all ranks, each in the order of issue, and returns what happened, messages as copies:
/// findings when messages do not fit or ranks wait for each other for ever.
StreamProgram meet(const std::vector<MessageProgram>& programs, Findings& findings);

}  // namespace ringlab::ring::message_laws
