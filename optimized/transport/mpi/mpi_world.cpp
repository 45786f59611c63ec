#include "optimized/transport/mpi/mpi_world.h"

#include <mpi.h>

#include "reference/core/error.h"

namespace ringlab::mpi {
namespace {

void on_terminate(int) { note_launcher_wants_end(); }

void initialise() {
  int already = 0;
  MPI_Initialized(&already);
  if (already) {
    throw_usage_error({.where = "mpi",
                       .expected = "one session per process",
                       .actual = "a second one",
                       .hint = ""});
  }
  int level = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), 0, "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

}  // namespace

World::World(const MpiOptions& options) {
  initialise();
  network_.emplace(MPI_COMM_WORLD, options);
  struct sigaction action {};
  action.sa_handler = on_terminate;
  sigaction(SIGTERM, &action, &previous_);
}

World::~World() {
  sigaction(SIGTERM, &previous_, nullptr);
  if (!finished_) network_->abort("it ended early");
  network_.reset();
  if (finished_) MPI_Finalize();
}

void World::finish() {
  network_->finish();
  finished_ = true;
}

}  // namespace ringlab::mpi
