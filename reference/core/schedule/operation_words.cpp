#include "reference/core/schedule/operation_words.h"

namespace ringlab {

Verb verb_of(Action action) {
  switch (action) {
    case Action::post_receive:
    case Action::post_receive_gradient:
      return Verb::post_receive;
    case Action::wait_receive:
    case Action::wait_receive_gradient:
      return Verb::wait_receive;
    case Action::post_send:
    case Action::post_send_gradient:
      return Verb::post_send;
    case Action::wait_send:
    case Action::wait_send_gradient:
      return Verb::wait_send;
    case Action::add_gradient:
      return Verb::add;
    default:
      return Verb::compute;
  }
}

bool concerns_gradients(Action action) { return action >= Action::post_receive_gradient; }

bool is_message(Action action) {
  return action != Action::compute && action != Action::add_gradient;
}

MessageKey message_of(int rank, const Operation& operation) {
  const Verb verb = verb_of(operation.action);
  const bool sends = verb == Verb::post_send || verb == Verb::wait_send;
  return {.from = sends ? rank : operation.peer,
          .to = sends ? operation.peer : rank,
          .owner = operation.owner,
          .gradient = concerns_gradients(operation.action)};
}

std::string place(int rank, const Operation& operation) {
  std::string text = "rank " + std::to_string(rank) + ", step " + std::to_string(operation.step) +
                     ", " + std::string(action_name(operation.action)) + " of chunk " +
                     std::to_string(operation.owner);
  if (!is_message(operation.action)) return text;
  const Verb verb = verb_of(operation.action);
  const bool sends = verb == Verb::post_send || verb == Verb::wait_send;
  return text + (sends ? " to rank " : " from rank ") + std::to_string(operation.peer);
}

}  // namespace ringlab
