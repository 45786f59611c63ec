// The groups of laws that check_schedule() is made of.
#pragma once

#include <string>
#include <vector>

#include "reference/core/schedule/operation_words.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::schedule_laws {

using Findings = std::vector<std::string>;

/// Whether all numbers are in range and all actions belong to the pass; the other laws may be
/// looked at only then.
bool check_numbers(const Schedule& schedule, const NeedMatrix& need, Findings& findings);
/// Every needed chunk once, in steps that count up.
void check_visits(const Schedule& schedule, const NeedMatrix& need, Findings& findings);
/// What one rank can get wrong on its own: slots, and posts without waits.
void check_slots(const Schedule& schedule, Findings& findings);
/// Each message has one sender and one receiver.
void check_messages(const Schedule& schedule, Findings& findings);
/// No deadlock, and where the gradients end up.
void check_progress(const Schedule& schedule, const NeedMatrix& need, Findings& findings);

}  // namespace ringlab::schedule_laws
