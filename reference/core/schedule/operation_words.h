// What checkers, simulators and costs ask of one operation of a schedule.
#pragma once

#include <compare>
#include <string>

#include "reference/core/schedule/schedule.h"

namespace ringlab {

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

}  // namespace ringlab
