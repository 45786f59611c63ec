#include "optimized/transport/mpi/mpi_world.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "optimized/transport/mpi/mpi_guard.h"
#include "reference/core/error.h"

namespace ringlab::mpi {
namespace {

// Machines are busy, and folders on networks behind the times; a rank may be stopped for a moment.
constexpr double kLeastToOutlast = 20, kWorldGraceSeconds = 1;
constexpr std::chrono::milliseconds kLook{2}, kStillToEnd{500}, kWorldAway{500};

void initialise(const MpiOptions& options, LaunchedRanks& launched) {
  int already = 0;
  MPI_Initialized(&already);
  if (already) {
    throw_usage_error(
        {.where = "mpi", .expected = "one session per process", .actual = "a second one"});
  }
  // Until MPI_Init returns no rank can be asked, so this deadline is all there is.
  const CallGuard guard(options, launched, "bring all ranks together (MPI_Init)");
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
  initialise(options_, launched_);
  const CallGuard guard(options_, launched_, "connect all ranks (MPI_Comm_dup)");
  network_.emplace(MPI_COMM_WORLD, options_);
  rank_ = network_->rank();
  ranks_ = network_->ranks();
}

World::~World() {
  // After finish() there is no network and nothing happens; else the others are told now.
  abort("it ended early");
  network_.reset();
}

void World::abort(const std::string& why) noexcept {
  if (network_) network_->abort(why);
}

// MPI ends here, while an error of its own can still be told: what comes after cannot fail with the
// others.
void World::finish() {
  network_->finish();
  // The watch has gone with the network by then, so this guard watches MPI_Finalize.
  const CallGuard guard(options_, launched_, "end together with all ranks (MPI_Finalize)");
  processes_ = network_->processes();
  network_.reset();
  MPI_Finalize();
}

void World::outlast(int peer, const std::string& operation, const std::function<bool()>& done) {
  using Seconds = std::chrono::duration<double>;
  auto begin = Clock::now(), before = begin;
  Seconds patience(std::max(options_.timeout_s, kLeastToOutlast));
  bool is_asked = false;
  while (!done()) {
    const ProcessState state = processes_->look(peer);
    const auto now = Clock::now();
    if (now - before > kWorldAway) begin += now - before;  // this process was stopped itself
    before = now;
    const Seconds waited = now - begin;
    // Launchers leave a second between SIGTERM and SIGKILL.
    if (!is_asked && end_wish() != EndWish::none) {
      is_asked = true;
      patience = std::min<Seconds>(patience, waited + kStillToEnd);
    }
    std::string why;
    if (state == ProcessState::gone) why = "dead: " + processes_->name_of(peer) + " has ended";
    const bool is_stopped = state == ProcessState::stopped;
    const Seconds most = is_stopped
                             ? std::min(patience, Seconds(options_.timeout_s + kWorldGraceSeconds))
                             : patience;
    if (why.empty() && waited >= most) {
      why = is_stopped ? "stopped: " + processes_->name_of(peer) : "late";
    }
    // Looked at once more: it may have done it as the last it did.
    if (!why.empty() && !done()) {
      throw RankError({.rank = rank_,
                       .suspect = peer,
                       .operation = operation,
                       .reason = name_of(peer) + " is " + why,
                       .elapsed_s = waited.count()});
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace ringlab::mpi
