// The ring loop: six verbs, executed in the order of the schedule.
#pragma once

#include "optimized/ring/host/exchange.h"

namespace ringlab::ring {

/// `rank` offers chunk_bytes(operation), gradient_bytes(operation), compute(operation) and
/// add_gradient(operation). Transfers overlap with computing because posts return at once.
template <class Rank>
void execute(const RankSchedule& schedule, Exchange& exchange, Rank& rank) {
  const auto bytes_of = [&](const Operation& operation) -> TensorPair {
    return concerns_gradients(operation) ? rank.gradient_bytes(operation)
                                         : rank.chunk_bytes(operation);
  };
  for (const Operation& operation : schedule.operations) {
    switch (operation.verb) {
      case Verb::post_receive:
        exchange.post_receive(operation, bytes_of(operation));
        break;
      case Verb::post_send:
        exchange.post_send(operation, bytes_of(operation));
        break;
      case Verb::wait_receive:
        exchange.wait_receive(operation);
        break;
      case Verb::wait_send:
        exchange.wait_send(operation);
        break;
      case Verb::compute:
        rank.compute(operation);
        break;
      case Verb::add:
        rank.add_gradient(operation);
        break;
    }
  }
}

}  // namespace ringlab::ring
