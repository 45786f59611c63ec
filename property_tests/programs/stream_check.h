// The laws of stream programs, proved for one program at a time, whoever made it.
#pragma once

#include <string>
#include <vector>

#include "optimized/ring/streams/stream_program.h"
#include "property_tests/programs/order.h"

namespace ringlab::ring {

/// The faults of a stream program for this schedule, one sentence per finding with rank, step, slot
/// and operation; empty when it obeys all laws, under every timing of the streams:
/// - every event is recorded once, and issued before it is waited for (a wait for an event that was
///   never recorded does nothing);
/// - operations that touch the same slot, one of them writing it, are ordered by streams and events
///   alone: nothing reads a slot while it is filled, nothing overwrites one that is still read by
///   an attend, an add or a copy from it; the same for gradient slots;
/// - slots hold the chunk, or the sum, that an operation names;
/// - each rank attends and adds what the schedule says, in its order, on its own compute stream;
/// - backward: each own sum ends with every contribution exactly once;
/// - overlap: the copy into the slot of a step comes after an attend of its rank only if slots and
///   data force it to, whatever stream it is on.
///
/// Vector clocks: O(operations · streams) time and memory. Never throws for a bad program.
std::vector<std::string> check_stream_program(const StreamProgram& program,
                                              const Schedule& schedule);

/// Operations that touch the same slot, one of them writing it, and that neither streams nor events
/// order: by number, as they are issued.
std::vector<programs::Race> races_of(const StreamProgram& program);

}  // namespace ringlab::ring
