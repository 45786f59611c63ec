// A communicator with a planned fault, to see what the others make of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "optimized/transport/communicator.h"

namespace ringlab {

/// The moment of a fault. before_send: a send is posted. after_receive: a receive was waited for.
/// in_compute: a receive was posted, which is where a ring starts to compute.
enum class FaultPhase { before_send, after_receive, in_compute };

/// A fault. kill: SIGKILL. term: SIGTERM. stop: SIGSTOP for `amount` seconds. delay: sleep for `amount` seconds.
/// fail: an error. memory: std::bad_alloc. flip: bit `amount` of the message sent, counted from its
/// end when negative. half: only the first half of the message is sent. replay: the bytes of the
/// previous message of the same length are sent again.
enum class FaultKind { kill, term, stop, delay, fail, memory, flip, half, replay };

struct FaultPlan {
  int rank = 0;
  int count = 0;  ///< which event of that phase, from 0
  FaultPhase phase = FaultPhase::before_send;
  FaultKind kind = FaultKind::fail;
  double amount = 0;
};

/// "RANK:COUNT:PHASE:KIND" or "RANK:COUNT:PHASE:KIND=AMOUNT", as "2:3:before_send:flip=17"; usage
/// error for anything else, and for flip, half and replay in another phase than before_send.
FaultPlan parse_fault_plan(const std::string& text);
/// From the environment variable RINGLAB_FAULT; nothing when it is not set.
std::optional<FaultPlan> fault_plan_of_environment();

/// Passes everything on to `network`, which must outlive it, but for the fault.
std::unique_ptr<Communicator> make_faulty(Communicator& network, const FaultPlan& plan);

}  // namespace ringlab
