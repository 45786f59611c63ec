// A job whose ranks MPI has brought together. Nothing here needs MPI to compile.
#pragma once

#include <cstdint>
#include <memory>

#include "optimized/transport/job_session.h"

namespace ringlab {

struct MpiOptions {
  double timeout_s = 60.0;  ///< a wait longer than this is an error
  /// The time in which a rank that is asked what it waits for must answer, or be suspected.
  double grace_s = 0.5;
  /// Longer messages travel in pieces, since MPI counts bytes in an int.
  std::int64_t piece_bytes = std::int64_t{1} << 30;
};

/// True in a build with MPI.
bool mpi_available();
/// A session from MPI_Init to MPI_Finalize, which is called after finish(), and only then: it might
/// hang.
/// Errors come at most grace_s · ranks after the deadline. Their suspect is found by following who
/// waits for whom: a rank inside wait() answers, one that is dead, stopped or busy elsewhere does
/// not. Environment error in a build without MPI, usage error for a timeout that is not positive.
/// Blocks until all ranks of the job have called it, for as long as MPI_Init does.
std::unique_ptr<JobSession> start_mpi(const MpiOptions& options);

}  // namespace ringlab
