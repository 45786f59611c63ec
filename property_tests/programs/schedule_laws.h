// The laws of schedules that are about no slots, and the slots that operations touch.
#pragma once

#include "property_tests/programs/order.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::programs {

/// True when all numbers are in range and all verbs belong to the pass; the other laws may be
/// looked at only then.
bool check_numbers(const Schedule& schedule, const NeedMatrix& need, Findings& findings);
/// Checks that every needed chunk is visited once, in steps that count up.
void check_visits(const Schedule& schedule, const NeedMatrix& need, Findings& findings);

/// The slots that an operation of `rank` touches: those of a message from its post to its wait, so
/// that waits by themselves touch none.
Accesses accesses_of(int rank, const Operation& operation, Pass pass);

}  // namespace ringlab::programs
