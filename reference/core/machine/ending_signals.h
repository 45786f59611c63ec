// Signals by which others end a program.
#pragma once

#include <csignal>
#include <cstring>

namespace ringlab {

inline constexpr int kEndingSignals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE,
                                         SIGALRM, SIGXCPU, SIGUSR1, SIGUSR2};

/// "TERM" for SIGTERM. Safe in a handler of signals.
inline const char* short_name_of_signal(int signal) { return ::sigabbrev_np(signal); }

/// True where whoever started this process wants a signal to be ignored, as nohup does.
inline bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace ringlab
