#include "cli/line/interruption.h"

#include <atomic>
#include <csignal>

namespace ringlab::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
std::atomic<bool> interruption_wanted = false;  // lock-free: a signal handler sets it

void note_interruption(int) { interruption_wanted = true; }

}  // namespace

Interruption::Interruption() {
  interruption_wanted = false;
  struct sigaction action {};
  action.sa_handler = note_interruption;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

Interruption::~Interruption() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

bool Interruption::is_wanted() { return interruption_wanted; }

}  // namespace ringlab::cli
