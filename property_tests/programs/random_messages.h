// Ranks as processes, without processes: an order of work that message programs allow, drawn from a
// seed.
#pragma once

#include <cstdint>

#include "optimized/ring/messages/message_program.h"
#include "property_tests/programs/random_streams.h"

namespace ringlab::ring {

/// Executes the programs of all ranks in some order that keeps the streams of each rank in order
/// and waits behind their records. An exchange begins as soon as its stream comes to it; a message
/// (a copy, for the machine) begins some time after both its exchanges have, and an exchange ends
/// with the last of its messages. Sends meet receives in the order of both ranks. Some streams are
/// much slower than others. Deterministic in the seed. A usage error when ranks wait for each other
/// for ever, or for messages that nobody sends.
void execute_in_random_order(const std::vector<MessageProgram>& programs, std::uint64_t seed,
                             StreamMachine& machine);

}  // namespace ringlab::ring
