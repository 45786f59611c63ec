// The laws of schedules, proved for one schedule at a time, whoever made it.
#pragma once

#include <string>
#include <vector>

#include "reference/core/schedule/schedule.h"

namespace ringlab {

/// The faults of a schedule, one sentence per finding with the rank and the step; empty when it
/// obeys all laws:
/// - every needed (rank, owner) pair is computed exactly once and no other one, the own chunk from
///   kHome, in steps 0, 1, 2, …;
/// - no slot is overwritten while it is sent from or received into, and none is computed on or sent
///   from unless it holds that owner's chunk and the receive was waited for; the same for gradient
///   slots;
/// - every post is waited for exactly once, and each message has one sender and one receiver;
/// - no delay of any message or rank leads to a deadlock, neither with buffered sends nor with
///   sends that wait for their receives;
/// - backward: each owner's kHome ends as the sum of all needed contributions, each exactly once;
/// - slots and gradient_slots are as many as are used.
///
/// O(operations · log(operations)) time and memory. Never throws for a bad schedule.
std::vector<std::string> check_schedule(const Schedule& schedule, const NeedMatrix& need);

}  // namespace ringlab
