#include "optimized/transport/mpi/mpi_guard.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "optimized/transport/mpi/mpi_watch.h"
#include "reference/core/error.h"

namespace ringlab::mpi {
namespace {

constexpr double kLeastSeconds = 20;  // many processes start at once, perhaps on a busy machine
constexpr double kMostSeconds = 1e9;
// The time left after SIGTERM to the end of a job that is all right, on a busy machine too; launchers
// leave a second before SIGKILL.
constexpr std::chrono::milliseconds kStillToEnd{600};

std::string what_happened(EndWish wish, double waited_s) {
  switch (wish) {
    case EndWish::asked:
      return "that this process was asked to end (SIGTERM): a rank may have died before it came";
    case EndWish::orphaned:
      return "that the process that started this one has ended";
    case EndWish::none:
      break;
  }
  return "that some have not come within " + std::to_string(std::lround(waited_s)) +
         " s: they may have died on the way";
}

}  // namespace

CallGuard::CallGuard(const MpiOptions& options, std::string doing)
    : options_(options), doing_(std::move(doing)) {
  // Without anybody to tell, a thread could do nothing with what it finds.
  if (options.last_word) thread_ = std::thread([this] { run(); });
}

CallGuard::~CallGuard() {
  // Joined before the guard goes, so no last word comes after the call has returned.
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void CallGuard::run() {
  constexpr std::chrono::milliseconds kLook{10};
  // A user's timeout is for steps; bringing thousands of processes up may take longer than one.
  const double patience_s = std::clamp(options_.timeout_s, kLeastSeconds, kMostSeconds);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(patience_s));
  auto end = deadline;
  std::unique_lock lock(mutex_);
  // Looks at the clock and at signals every few milliseconds; the call
  // itself cannot be interrupted.
  while (!end_.wait_for(lock, kLook, [this] { return ended_; })) {
    const EndWish wish = end_wish();
    const auto now = Clock::now();
    // Asked to end: soon, but not at once, as the call may be about to return.
    if (wish != EndWish::none) end = std::min(end, now + kStillToEnd);
    if (now < end) continue;
    // Said while the call still hangs: the callee ends the process, as MPI cannot be told to.
    return options_.last_word(Error(
        ErrorKind::environment,
        {.where = "MPI", .expected = "to " + doing_, .actual = what_happened(wish, patience_s)}));
  }
}

}  // namespace ringlab::mpi
