#include "optimized/transport/mpi/mpi_signals.h"

#include <unistd.h>

#include <atomic>
#include <chrono>

#include "optimized/transport/mpi/mpi_peers.h"
#include "reference/core/machine/ending_signals.h"

namespace ringlab::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRound{100};  // between looks at the launcher

// Lock-free: handlers of signals set them.
std::atomic<int> asked_by = 0;
std::atomic<int> continued = 0;

void on_ending(int signal) {
  int none = 0;
  asked_by.compare_exchange_strong(none, signal);
}
void on_continuing(int) { ++continued; }

// Launchers make a group of what they start, which may be a script around this program.
std::int64_t launcher_now() { return facts_of_process(::getpgrp()).parent; }

bool launcher_has_ended() {
  // The launcher as it was first found; this is asked early, while it surely lives.
  static const std::int64_t launcher = launcher_now();
  // Asked by two threads at most, a few hundred times a second: /proc is read ten times a second.
  static std::atomic<Clock::rep> look_at = 0;
  static std::atomic<bool> ended = false;
  const Clock::time_point now = Clock::now();
  if (now.time_since_epoch().count() < look_at) return ended;
  look_at = (now + kRound).time_since_epoch().count();
  const std::int64_t found = launcher_now();
  // 0 means that nothing is known, which is not that it has ended.
  ended = found != 0 && launcher != 0 && found != launcher;
  return ended;
}

}  // namespace

EndWish end_wish() {
  if (asked_by != 0) return EndWish::asked;
  return launcher_has_ended() ? EndWish::orphaned : EndWish::none;
}

std::string asking_signal() {
  const char* const name = short_name_of_signal(asked_by);
  return name == nullptr ? "a signal" : std::string("SIG") + name;
}

int continuations() { return continued; }

Signals::Signals() {
  const auto handle = [this](int signal, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    // Calls of others that were interrupted go on by themselves.
    action.sa_flags = SA_RESTART;
    Before& before = before_.emplace_back(Before{signal, {}});
    ::sigaction(signal, &action, &before.action);
  };
  for (const int signal : kEndingSignals) {
    if (!is_ignored(signal)) handle(signal, on_ending);
  }
  handle(SIGCONT, on_continuing);
}

Signals::~Signals() {
  for (const Before& before : before_) ::sigaction(before.signal, &before.action, nullptr);
}

}  // namespace ringlab::mpi
