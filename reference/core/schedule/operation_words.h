// Properties and names of one operation of a schedule, for checkers, simulators and costs.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "reference/core/schedule/schedule.h"

namespace ringlab {

/// True for messages of dK and dV, and for sums of them.
inline bool concerns_gradients(const Operation& operation) {
  return operation.payload == Payload::gradients;
}
inline bool is_message(const Operation& operation) {
  return operation.verb != Verb::compute && operation.verb != Verb::add;
}
inline bool is_send(const Operation& operation) {
  return operation.verb == Verb::post_send || operation.verb == Verb::wait_send;
}
inline bool is_wait(const Operation& operation) {
  return operation.verb == Verb::wait_receive || operation.verb == Verb::wait_send;
}
/// The slot of K and V, or of gradients, that the operation is about.
inline int slot_of(const Operation& operation) {
  return concerns_gradients(operation) ? operation.gradient : operation.slot;
}
/// "post_send_gradient": verb and payload as one word.
std::string_view action_name(const Operation& operation);

/// "forward" or "backward".
constexpr std::string_view pass_name(Pass pass) {
  return pass == Pass::forward ? "forward" : "backward";
}

/// The key of a message: no other message of its pass has the same.
struct MessageKey {
  int from = 0;
  int to = 0;
  int owner = 0;
  Payload payload = Payload::chunk;
  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};
MessageKey message_of(int rank, const Operation& operation);

/// "rank 2, step 3, post_send of chunk 1 to rank 3".
std::string place(int rank, const Operation& operation);

}  // namespace ringlab
