// The groups of laws that check_schedule() is made of, and the words they share.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "reference/core/schedule.h"

namespace ringlab::schedule_laws {

using Findings = std::vector<std::string>;

/// What an action does, whether with K and V or with their gradients.
enum class Verb { post_receive, wait_receive, post_send, wait_send, compute, add };
Verb verb_of(Action action);
/// Messages of dK and dV, and sums of them.
bool concerns_gradients(Action action);
bool is_message(Action action);

/// What tells the messages of one pass apart.
struct MessageKey {
  int from = 0;
  int to = 0;
  int owner = 0;
  bool gradient = false;
  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};
MessageKey message_of(int rank, const Operation& operation);

/// "rank 2, step 3, post_send of chunk 1 to rank 3".
std::string place(int rank, const Operation& operation);

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
