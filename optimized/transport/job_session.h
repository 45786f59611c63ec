// One process as a rank of a job, however the ranks have found each other.
#pragma once

#include <functional>
#include <string>

#include "optimized/transport/communicator.h"

namespace ringlab {

/// The session of this process: one per process, used by the thread that made it.
///
/// Communicator calls throw a RankError at the deadline, or sooner when another rank has said that
/// the job has failed. After a failure every further call throws.
class JobSession {
 public:
  virtual ~JobSession() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual Communicator& network() = 0;

  /// RankError when another rank has said that it failed. Serves those who wait for something else
  /// than a message; `operation` is what the error names.
  virtual void check_others(const std::string& operation) = 0;
  /// Returns when all ranks have come here; RankError when one does not within the timeout.
  virtual void finish() = 0;
  /// To be called after finish(): returns when `done` says so. RankError where that does not come:
  /// `peer`, whose work it is, has ended or is late, or this process is asked to end.
  virtual void outlast(int peer, const std::string& operation,
                       const std::function<bool()>& done) = 0;
  /// Tells the other ranks that this one has failed and why. Does nothing the second time.
  virtual void abort(const std::string& why) noexcept = 0;
};

}  // namespace ringlab
