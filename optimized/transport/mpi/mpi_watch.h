// A thread of each rank that answers the others while the rank computes, finds out who is to blame,
// and has the last word when the rank does not come to speak.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "optimized/transport/mpi/mpi_blame.h"
#include "optimized/transport/mpi/mpi_control.h"
#include "optimized/transport/mpi/mpi_peers.h"
#include "optimized/transport/mpi/mpi_session.h"
#include "optimized/transport/mpi/mpi_signals.h"
#include "reference/core/error.h"

namespace ringlab::mpi {

/// All of MPI is used under one mutex, by the rank's own thread and by this one: a computing rank
/// answers, so that silence means dead or stopped. Failures that this thread finds are announced to
/// all ranks; the rank's own thread throws them when it waits or comes to wait, and hears nothing
/// of them when the job has ended well.
class Watch {
 public:
  /// Every member but stop() is to be called with `mpi` locked.
  Watch(std::mutex& mpi, ControlChannel& control, const PeerProcesses& processes,
        const MpiOptions& options);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  void stop();

  /// The rank's own thread waits for `peer`, from now on until it works again.
  void waits_for(int peer);
  void works();
  /// The rank's own thread has been told, or has ended well: it needs no last word.
  void knows(std::unique_lock<std::mutex>& lock);

  /// The failure that the rank has been told of, as its error while it was `doing` something.
  RankError error_of(const Failed& failed, const std::string& doing, double elapsed_s) const;

 private:
  void run();
  void look(std::unique_lock<std::mutex>& lock);
  bool look_around();
  Inquiry inquiry(std::unique_lock<std::mutex>& lock);
  void judge_delay(std::unique_lock<std::mutex>& lock);
  void judge_end(std::unique_lock<std::mutex>& lock, EndWish wish);
  void come_back(std::unique_lock<std::mutex>& lock);
  void speak(std::unique_lock<std::mutex>& lock, const Failed& failed);

  ControlChannel& control_;
  const PeerProcesses& processes_;
  const MpiOptions options_;
  std::mutex& mpi_;
  std::condition_variable change_;
  std::optional<int> awaited_;  ///< by the rank's own thread
  Clock::time_point judge_at_ = {}, look_at_ = {}, beat_ = Clock::now();
  std::optional<Clock::time_point> told_at_;
  int continuations_ = continuations();  ///< that this thread knows of
  bool knows_ = false;
  bool speaking_ = false;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace ringlab::mpi
