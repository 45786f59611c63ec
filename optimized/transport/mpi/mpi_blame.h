// Finds the rank that is to blame when this rank waits, or is to end.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "optimized/transport/mpi/mpi_control.h"
#include "optimized/transport/mpi/mpi_peers.h"

namespace ringlab::mpi {

using Clock = std::chrono::steady_clock;
/// A duration of so many seconds, thirty years at most: it keeps deadlines representable.
Clock::duration duration_of(double seconds);

struct Suspicion {
  int suspect = kNobody;
  std::string why;
};

/// Means of an inquiry. Processes of this machine are looked at; ranks are asked, and answer at
/// once whatever they do, unless they are dead or stopped.
struct Inquiry {
  ControlChannel& control;
  const PeerProcesses& processes;
  Clock::duration grace;  ///< for answers
  double timeout_s = 0;   ///< a rank may do one thing for that long
  /// Lets others use MPI for a moment; false when there is no question any more.
  std::function<bool()> pause;
};

/// Follows who waits for whom, starting at `peer` (kEverybody: at all), until a rank is dead,
/// stopped, silent, or has done nothing else for longer than the timeout; ranks that wait for each
/// other for that long are nobody's fault. Empty when the question has gone, and when all ranks
/// have got on within the timeout: then the search may be repeated.
std::optional<Suspicion> find_suspect(const Inquiry& inquiry, int peer);

/// A rank of this machine that is dead, if there is one. Asks nobody.
std::optional<Suspicion> find_dead_here(const ControlChannel& control,
                                        const PeerProcesses& processes);
/// find_dead_here(), else a rank of another machine that does not answer; empty too when the
/// question has gone.
std::optional<Suspicion> find_dead(const Inquiry& inquiry);

}  // namespace ringlab::mpi
