// Runs P ranks inside this process: as free-running threads, or one at a time under a seeded
// scheduler with a virtual clock.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "optimized/transport/communicator.h"

namespace ringlab {

/// Options of the network of one in-process run.
struct NetworkOptions {
  double timeout_s = 60.0;  ///< a wait longer than this is an environment error (threads only)
  /// Zero-buffer rendezvous: a send completes only when its receive is posted. Otherwise sends are
  /// buffered; threads do so up to 4 MiB and carry longer messages while both ranks wait.
  bool rendezvous = false;
};

/// Traffic of a run that ended well.
struct NetworkSummary {
  std::vector<Traffic> traffic;        ///< per rank
  std::int64_t leftover_messages = 0;  ///< sent and never received: a broken protocol
  std::int64_t virtual_time = 0;       ///< simulated runs: ticks until the last rank ended
};

/// One rank's program. It may wait for other ranks through its communicator only.
using RankBody = std::function<void(Communicator&)>;

/// Runs `body` once per rank, each in a thread of its own, and returns when all have ended.
/// Usage error for ranks < 1 or a timeout that is not positive (infinity is allowed).
///
/// When a rank throws, the others are woken with an environment error that names it, and the first
/// failure, or the first DeviceStuck, is rethrown: an Error keeps its kind, a MachineError or
/// DeviceStuck its type, and gains its rank; any other exception becomes an environment error with
/// its text. A deadlock, or a message from a rank that has ended, is found at once and not at the
/// deadline, which every piece of a long message moves on. Requests never waited for are harmless:
/// a buffered send still arrives, a receive is cancelled when its body ends.
NetworkSummary run_threads(int ranks, const NetworkOptions& options, const RankBody& body);

/// Like run_threads, but all ranks are fibres of the calling thread. Exactly one runs at any
/// moment, chosen by a scheduler seeded with `seed`, and time is a virtual clock: no timeout. Every
/// message arrives after a random delay. The send buffer is read on arrival and not before, so
/// overwriting it before wait() corrupts the message; the receive buffer holds NaN from posting
/// until arrival, so reading it before wait() reads NaN on some seeds. The same seed gives the same
/// run. When every rank waits and no message is in flight the run ends with an environment error
/// that says who waits for whom. A send never waited for is lost when its body ends.
NetworkSummary run_simulated(int ranks, std::uint64_t seed, const NetworkOptions& options,
                             const RankBody& body);

}  // namespace ringlab
