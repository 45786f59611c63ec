// A job whose ranks MPI has brought together. Nothing here needs MPI to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "optimized/transport/job_session.h"
#include "reference/core/error.h"

namespace ringlab {

struct MpiOptions {
  double timeout_s = 60.0;  ///< a wait longer than this is an error
  /// The time in which a rank that is asked what it waits for must answer, or be suspected.
  double grace_s = 0.5;
  /// Longer messages travel in pieces, since MPI counts bytes in an int.
  std::int64_t piece_bytes = std::int64_t{1} << 30;
  /// Called at most once, from another thread, when the job has failed and this rank does not come
  /// to hear it from a call: it computes, or MPI does not return from its start or its end within
  /// timeout_s or 20 s, whichever is longer. It may say so and end the process at once; MPI cannot be
  /// left in another way then. After it has returned calls throw as ever.
  std::function<void(const Error&)> last_word = {};
};

/// True in a build with MPI.
bool mpi_available();
/// A session from MPI_Init to MPI_Finalize, which finish() calls, and nothing else: it might hang
/// where a rank has failed. After finish() there is no network.
/// Errors come at most grace_s · ranks after the deadline. Their suspect is found by following who
/// waits for whom: a thread of each rank answers, whatever the rank does, unless it is dead or
/// stopped. A rank that got on within the timeout is waited for. SIGTERM ends the job: the error
/// names the rank that has died, and nobody when all are well. Environment error in a build without
/// MPI, usage error for a timeout that is not positive. Blocks until all ranks of the job have
/// called it, for as long as MPI_Init does.
std::unique_ptr<JobSession> start_mpi(const MpiOptions& options);

}  // namespace ringlab
