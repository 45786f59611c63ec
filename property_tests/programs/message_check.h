// The laws of message programs, proved for the programs of all ranks together, whoever made them.
#pragma once

#include <string>
#include <vector>

#include "optimized/ring/messages/message_program.h"

namespace ringlab::ring {

/// The faults of message programs for this schedule, one sentence per finding; empty when they obey
/// all laws:
/// - every event is recorded once, and issued before its rank waits for it;
/// - operations of a rank that touch the same slot, one of them writing it, are ordered by its own
///   streams and events alone, whatever other ranks do: nothing is sent before it is there, nothing
///   is received into a slot that is still read or sent. No slot is touched by another rank, so
///   this holds whether a send ends when its receive has begun, or earlier, with the data in a
///   buffer of the library. The messages of one exchange touch different slots, or only read;
/// - a rank issues its exchanges in the order of rounds, in a round chunks before sums, so that
///   they have the same order on all ranks, on each communicator and on both together;
/// - every send meets one receive, in the order of both ranks on its communicator, in the same
///   round, and both name the same chunk, so that both count the same bytes;
/// - ranks come to their end when messages end only with both exchanges begun, exchanges only with
///   all their messages, and each rank executes one operation after the other, in the order of
///   issue. Streams side by side wait for less, and come to their end, too;
/// - slots hold the chunk, or the sum, that an operation names, each rank computes what the
///   schedule says, in its order, and each own sum ends with every contribution exactly once.
///
/// O(operations · log operations). Never throws for bad programs.
std::vector<std::string> check_message_programs(const std::vector<MessageProgram>& programs,
                                                const Schedule& schedule);

}  // namespace ringlab::ring
