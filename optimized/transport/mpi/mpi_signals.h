// Wishes from outside: signals that come to this process, and the launcher's end.
#pragma once

#include <csignal>
#include <string>
#include <vector>

namespace ringlab::mpi {

/// Why this process should end, from outside.
enum class EndWish {
  none,
  asked,    ///< by a signal: launchers send SIGTERM when another rank has died
  orphaned  ///< the process that started this one, and its group, has ended
};
EndWish end_wish();
/// "SIGTERM": the first signal that asked this process to end.
std::string asking_signal();
/// Number of times that this process has gone on after a stop.
int continuations();

/// While one lives, signals by which others end a process (but for ignored ones) are wishes, and
/// SIGCONT is counted.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  struct Before {
    int signal = 0;
    struct sigaction action {};
  };
  std::vector<Before> before_;
};

}  // namespace ringlab::mpi
