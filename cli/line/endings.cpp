#include "cli/line/endings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace ringlab::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
std::atomic<int> interrupted_by = 0;  // lock-free: a signal handler sets it

void note_interruption(int signal) { interrupted_by = signal; }

}  // namespace

Interruption::Interruption() {
  interrupted_by = 0;
  struct sigaction action {};
  action.sa_handler = note_interruption;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

Interruption::~Interruption() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

bool Interruption::is_wanted() { return interrupted_by != 0; }
bool Interruption::is_termination() { return interrupted_by == SIGTERM; }

void leave_stuck(const DeviceStuck& error) {
  const char* const over_a_bar = ::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "";
  fmt::print(stderr, "{}ringlab: {}\n", over_a_bar, error.what());
  std::fflush(nullptr);
  std::_Exit(error.exit_code());
}

}  // namespace ringlab::cli
