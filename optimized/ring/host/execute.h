// The ring loop: ten verbs, executed in the order of the schedule.
#pragma once

#include "optimized/ring/host/exchange.h"

namespace ringlab::ring {

/// `rank` offers chunk_bytes(operation), gradient_bytes(operation), compute(operation) and
/// add_gradient(operation). Whatever overlaps does so because posts return at once.
template <class Rank>
void execute(const RankSchedule& schedule, Exchange& exchange, Rank& rank) {
  for (const Operation& operation : schedule.operations) {
    switch (operation.action) {
      case Action::post_receive:
        exchange.post_receive(operation, rank.chunk_bytes(operation));
        break;
      case Action::post_send:
        exchange.post_send(operation, rank.chunk_bytes(operation));
        break;
      case Action::post_receive_gradient:
        exchange.post_receive(operation, rank.gradient_bytes(operation));
        break;
      case Action::post_send_gradient:
        exchange.post_send(operation, rank.gradient_bytes(operation));
        break;
      case Action::wait_receive:
      case Action::wait_receive_gradient:
        exchange.wait_receive(operation);
        break;
      case Action::wait_send:
      case Action::wait_send_gradient:
        exchange.wait_send(operation);
        break;
      case Action::compute:
        rank.compute(operation);
        break;
      case Action::add_gradient:
        rank.add_gradient(operation);
        break;
    }
  }
}

}  // namespace ringlab::ring
