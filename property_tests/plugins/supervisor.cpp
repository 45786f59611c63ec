#include "property_tests/plugins/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <utility>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {
namespace {

pid_t fork_or_end() {
  const pid_t child = fork();
  if (child < 0) _exit(4);
  return child;
}

/// The first process of a namespace: no signal from inside reaches it, and all others end with it.
[[noreturn]] void stay_first() {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  signal(SIGCHLD, SIG_IGN);  // orphans are not to be waited for
  for (;;) pause();
}

/// Ends as the child did, without a core file.
[[noreturn]] void end_like(int status) {
  if (WIFSIGNALED(status)) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    raise(WTERMSIG(status));
  }
  _exit(WEXITSTATUS(status));
}

/// The status of `child`, which is ended when the other end of the socket is closed.
int wait_for(pid_t child, const sigset_t& signals) {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(-1, &status, WNOHANG | __WALL);
    if (ended == child) return status;
    if (ended > 0) continue;
    if (ended < 0 && errno == ECHILD) return SIGKILL;  // somebody else's wait: nothing is known
    pollfd socket{.fd = kSocket, .events = POLLRDHUP, .revents = 0};
    if (ppoll(&socket, 1, nullptr, &signals) <= 0) continue;  // a child has ended
    kill(child, SIGKILL);
    while (waitpid(child, &status, __WALL) != child) {
    }
    return status;
  }
}

[[noreturn]] void supervise(pid_t child, pid_t first, const sigset_t& signals) {
  const int status = wait_for(child, signals);
  if (first > 0) {
    kill(first, SIGKILL);
    waitpid(first, nullptr, 0);  // returns when the last process of the namespace is gone
  }
  end_children();
  end_like(status);
}

/// Kills the children of one thread of this process and returns their number.
int kill_children_of(int threads, const char* thread) {
  char path[NAME_MAX + sizeof("/children")];
  std::snprintf(path, sizeof(path), "%s/children", thread);
  const int file = openat(threads, path, O_RDONLY | O_CLOEXEC);
  char text[1024];
  int killed = 0;
  pid_t child = 0;  // "12 345 6 ", in pieces
  for (ssize_t got = 0; (got = read(file, text, sizeof(text))) > 0;) {
    for (ssize_t at = 0; at < got; ++at) {
      if (text[at] >= '0' && text[at] <= '9') {
        child = 10 * child + (text[at] - '0');
      } else if (child > 0) {
        killed += kill(std::exchange(child, 0), SIGKILL) == 0 ? 1 : 0;
      }
    }
  }
  close(file);
  return killed;
}

/// Kills the children of this process and returns their number. Allocates nothing: it runs in copies
/// of processes with many threads, and where memory has run out.
int kill_children() {
  const int threads = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(dirent64) char entries[4096];
  int killed = 0;
  for (ssize_t got = 0; (got = getdents64(threads, entries, sizeof(entries))) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      killed += kill_children_of(threads, entry->d_name);
      at += entry->d_reclen;
    }
  }
  close(threads);
  return killed;
}

}  // namespace

// SIGCHLD is blocked but while ppoll() waits: none is missed.
void become_supervised(Descendants descendants) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t child_ended, before;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ended, &before);
  struct sigaction wake {
  }, old{};
  wake.sa_handler = [](int) {};
  sigaction(SIGCHLD, &wake, &old);
  pid_t first = 0;
  if (descendants == Descendants::in_a_namespace) {
    first = fork_or_end();
    if (first == 0) stay_first();
  }
  const pid_t child = fork_or_end();
  if (child != 0) {
    sigset_t signals = before;
    sigdelset(&signals, SIGCHLD);
    supervise(child, first, signals);
  }
  setpgid(0, 0);  // signals to its group do not reach the supervisor
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (old.sa_handler != SIG_IGN) sigaction(SIGCHLD, &old, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

// Grandchildren become children of this process as soon as their parents are gone. A process that
// forks faster than this one looks ends with the namespace, or is left after a second.
int end_children() {
  constexpr int kLooks = 1000;
  int ended = 0;
  for (int look = 0; look < kLooks; ++look) {
    pid_t reaped = 0;
    while ((reaped = waitpid(-1, nullptr, WNOHANG | __WALL)) > 0) {
    }
    if (reaped < 0) break;  // there is none
    const int killed = kill_children();
    if (look == 0) ended = killed;
    usleep(1000);
  }
  return ended;
}

}  // namespace ringlab::plugins
