// Whose fault it is that this rank waits: follows who waits for whom until somebody is silent.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "optimized/transport/mpi/mpi_control.h"

namespace ringlab::mpi {

using Clock = std::chrono::steady_clock;

struct Suspicion {
  int suspect = kNobody;
  std::string why;
};

/// Asks along the chain of waiting ranks, starting at `peer` (kEverybody: at all). A rank that does
/// not answer within `grace` is the suspect; ranks that wait for each other are nobody's fault.
/// Empty when `settled` says, meanwhile, that there is no question any more.
std::optional<Suspicion> find_suspect(ControlChannel& control, int peer, Clock::duration grace,
                                      const std::function<bool()>& settled);

}  // namespace ringlab::mpi
