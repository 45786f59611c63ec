#include "optimized/transport/mpi/mpi_world.h"

#include <mpi.h>

#include "optimized/transport/mpi/mpi_guard.h"
#include "reference/core/error.h"

namespace ringlab::mpi {
namespace {

// Sets a lock-free atomic: all that a signal handler may do.
void on_terminate(int) { note_asked_to_end(); }

void initialise(const MpiOptions& options) {
  int already = 0;
  MPI_Initialized(&already);
  if (already) {
    throw_usage_error(
        {.where = "mpi", .expected = "one session per process", .actual = "a second one"});
  }
  // Until MPI_Init returns no rank can be asked, so this deadline is all there is.
  const CallGuard guard(options, "bring all ranks together (MPI_Init)");
  int level = 0;
  // One thread at a time is enough: the watch and the rank share a mutex (decision 37).
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), 0, "MPI_Init_thread");
  if (level < MPI_THREAD_SERIALIZED) {
    throw_environment_error({.where = "mpi",
                             .expected = "an MPI that several threads may use in turn",
                             .actual = "one for a single thread",
                             .hint = "Build MPI with threads"});
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

}  // namespace

World::World(const MpiOptions& options) : options_(options) {
  struct sigaction action {};
  action.sa_handler = on_terminate;
  // Calls of others that were interrupted go on by themselves.
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, &previous_);
  initialise(options_);
  const CallGuard guard(options_, "connect all ranks (MPI_Comm_dup)");
  network_.emplace(MPI_COMM_WORLD, options_);
  rank_ = network_->rank();
  ranks_ = network_->ranks();
}

World::~World() {
  // After finish() there is no network and nothing happens; else the others are told now.
  abort("it ended early");
  network_.reset();
  sigaction(SIGTERM, &previous_, nullptr);
}

void World::abort(const std::string& why) noexcept {
  if (network_) network_->abort(why);
}

// MPI ends here, while an error of its own can still be told: what comes after cannot fail with the
// others.
void World::finish() {
  network_->finish();
  // The watch has gone with the network by then, so this guard watches MPI_Finalize.
  const CallGuard guard(options_, "end together with all ranks (MPI_Finalize)");
  network_.reset();
  MPI_Finalize();
}

}  // namespace ringlab::mpi
