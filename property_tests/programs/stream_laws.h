// The groups of laws that programs of streams are held to, and programs of messages once it is
// known which sends met which receives.
#pragma once

#include "optimized/ring/streams/stream_program.h"
#include "property_tests/programs/order.h"

namespace ringlab::programs {

/// True when all numbers are in range; the other laws may be looked at only then.
bool check_numbers(const ring::StreamProgram& program, const Schedule& schedule,
                   Findings& findings);
/// Checks that slots hold what operations name, in the order of issue, and own sums end complete.
void check_contents(const ring::StreamProgram& program, const Schedule& schedule,
                    Findings& findings);
/// Checks that ranks compute what the schedule says, in its order, and on the right streams.
void check_work(const ring::StreamProgram& program, const Schedule& schedule, Findings& findings);
/// Checks that no copy waits for more computing than it must. `clocks`: at the ends of operations.
void check_overlap(const ring::StreamProgram& program, const std::vector<ring::StreamClock>& clocks,
                   Findings& findings);

/// True of attends and adds.
bool is_computed(const ring::StreamOperation& operation);
/// An attend or an add as a schedule says it.
Operation computing_of(const ring::StreamOperation& operation);

}  // namespace ringlab::programs
