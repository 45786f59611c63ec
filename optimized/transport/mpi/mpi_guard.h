// A deadline around calls of MPI that wait for all ranks and cannot be told to stop.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "optimized/transport/mpi/mpi_session.h"

namespace ringlab::mpi {

/// While one lives, a thread waits: at the deadline, at SIGTERM and when the launcher has ended it
/// calls options.last_word. Without one nobody could hear of it, and nothing is done.
class CallGuard {
 public:
  /// `doing`: "bring all ranks together (MPI_Init)".
  CallGuard(const MpiOptions& options, std::string doing);
  ~CallGuard();
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  void run();

  const MpiOptions& options_;
  const std::string doing_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace ringlab::mpi
