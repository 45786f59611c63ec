// This process as one rank of an MPI job. Nothing here needs MPI to compile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "optimized/transport/communicator.h"

namespace ringlab {

struct MpiOptions {
  double timeout_s = 60.0;  ///< a wait longer than this is an error
  /// How long a rank that is asked what it waits for may take to answer before it is suspected.
  double grace_s = 0.5;
  /// Longer messages travel in pieces, since MPI counts bytes in an int.
  std::int64_t piece_bytes = std::int64_t{1} << 30;
};

/// From MPI_Init to MPI_Finalize; one per process. Used by the thread that made it.
///
/// Communicator calls throw a RankError at the deadline, at most grace_s · ranks later, or as soon
/// as another rank says that the job has failed. Its suspect is found by following who waits for
/// whom: a rank inside wait() answers, one that is dead, stopped or busy elsewhere does not.
/// After a failure the other ranks are told, and every further call throws.
class MpiSession {
 public:
  virtual ~MpiSession() = default;  ///< finalizes MPI after finish(), and only then: it might hang
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual Communicator& network() = 0;

  /// Returns when all ranks have come here; RankError when one does not within the timeout.
  virtual void finish() = 0;
  /// Tells the other ranks that this one has failed and why. Does nothing the second time.
  virtual void abort(const std::string& why) noexcept = 0;
};

/// Whether this build has MPI.
bool mpi_available();
/// Environment error in a build without MPI, usage error for a timeout that is not positive.
/// Blocks until all ranks of the job have called it, for as long as MPI_Init does.
std::unique_ptr<MpiSession> start_mpi(const MpiOptions& options);

}  // namespace ringlab
