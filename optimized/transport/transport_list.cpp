// The transports of this build: the one place that asks whether MPI was found.
#include "optimized/transport/mpi/mpi_session.h"
#include "reference/core/error.h"

#if RINGLAB_HAVE_MPI
#include "optimized/transport/mpi/mpi_world.h"
#endif

namespace ringlab {

#if RINGLAB_HAVE_MPI

bool mpi_available() { return true; }

std::unique_ptr<JobSession> start_mpi(const MpiOptions& options) {
  return std::make_unique<mpi::World>(options);
}

#else

bool mpi_available() { return false; }

std::unique_ptr<JobSession> start_mpi(const MpiOptions&) {
  throw_environment_error({.where = "transport mpi",
                           .expected = "a build with MPI",
                           .actual = "one built without MPI",
                           .hint = "Install libopenmpi-dev and openmpi-bin and configure again"});
}

#endif

}  // namespace ringlab
