#include "reference/core/schedule/operation_words.h"

namespace ringlab {

std::string_view action_name(const Operation& operation) {
  const bool gradients = concerns_gradients(operation);
  switch (operation.verb) {
    case Verb::post_receive:
      return gradients ? "post_receive_gradient" : "post_receive";
    case Verb::wait_receive:
      return gradients ? "wait_receive_gradient" : "wait_receive";
    case Verb::post_send:
      return gradients ? "post_send_gradient" : "post_send";
    case Verb::wait_send:
      return gradients ? "wait_send_gradient" : "wait_send";
    case Verb::compute:
      return "compute";
    case Verb::add:
      return "add_gradient";
  }
  return "";
}

MessageKey message_of(int rank, const Operation& operation) {
  const bool sends = is_send(operation);
  return {.from = sends ? rank : operation.peer,
          .to = sends ? operation.peer : rank,
          .owner = operation.owner,
          .payload = operation.payload};
}

std::string place(int rank, const Operation& operation) {
  std::string text = "rank " + std::to_string(rank) + ", step " + std::to_string(operation.step) +
                     ", " + std::string(action_name(operation)) + " of chunk " +
                     std::to_string(operation.owner);
  if (!is_message(operation)) return text;
  return text + (is_send(operation) ? " to rank " : " from rank ") + std::to_string(operation.peer);
}

}  // namespace ringlab
