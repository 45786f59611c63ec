// A deadline around calls of MPI that wait for all ranks and cannot be told to stop.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "optimized/transport/mpi/mpi_launched.h"
#include "optimized/transport/mpi/mpi_session.h"
#include "optimized/transport/mpi/mpi_signals.h"
#include "reference/core/error.h"

namespace ringlab::mpi {

/// While one lives, a thread waits, and calls options.last_word: a second after the timeout where a
/// rank is missing, which the error names; at the deadline, 20 s at least, where nobody is known to be;
/// when this process is asked to end; and when the launcher has ended. Without one nobody could hear
/// of it, and nothing is done.
class CallGuard {
 public:
  /// `doing`: "bring all ranks together (MPI_Init)".
  CallGuard(const MpiOptions& options, LaunchedRanks& ranks, std::string doing);
  ~CallGuard();
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  void run();
  Error error_of(EndWish wish, double waited_s) const;

  const MpiOptions& options_;
  LaunchedRanks& ranks_;
  const std::string doing_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  bool was_stopped_ = false;  ///< this process: others may have ended for want of it
  std::thread thread_;
};

}  // namespace ringlab::mpi
