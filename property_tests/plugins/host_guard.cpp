#include "property_tests/plugins/host_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "property_tests/plugins/host_memory.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ringlab::plugins {
namespace {

// Sanitizers reserve terabytes of addresses and have threads and signal handlers of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr int kFatalSignals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGXCPU, SIGSYS, SIGTRAP};
constexpr std::size_t kSignalStackBytes = 64 * 1024;

Reply last_words;
alignas(16) unsigned char signal_stack[kSignalStackBytes];

void limit(int resource, std::int64_t value) {
  rlimit limits{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limits) != 0) return;
  limits.rlim_cur = std::min<rlim_t>(static_cast<rlim_t>(value), limits.rlim_max);
  setrlimit(static_cast<__rlimit_resource>(resource), &limits);
}

/// Waits for the other end of the socket to be closed.
void* end_with_the_socket(void*) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pollfd socket{.fd = kSocket, .events = POLLRDHUP, .revents = 0};
  while (poll(&socket, 1, -1) < 0 || (socket.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) {
  }
  _exit(0);
}

/// True when the fault was a write, where the processor says so.
bool was_a_write([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  constexpr long long kWrite = 2;  // bit of the page fault's error code
  return (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
#else
  return false;
#endif
}

// Only what is safe in a signal handler: no memory, no locks. The message is made in a buffer that
// was there before.
void on_fatal_signal(int signal, siginfo_t* info, void* context) {
  last_words.kind = ReplyKind::crashed;
  last_words.signal = signal;
  last_words.message[0] = '\0';
  if (signal == SIGSEGV || signal == SIGBUS) {
    describe_address(info->si_addr, was_a_write(context), last_words.message,
                     sizeof(last_words.message));
  }
  send(kSocket, &last_words, sizeof(last_words), MSG_NOSIGNAL);
  _exit(128 + signal);
}

}  // namespace

void restrict_process(const HostLimits& limits) {
  constexpr std::int64_t kMostProcesses = 4096;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NPROC, kMostProcesses);
  limit(RLIMIT_FSIZE, limits.file_bytes);
  if (limits.memory_bytes > 0 && !kSanitized) limit(RLIMIT_AS, limits.memory_bytes);
  pthread_t watcher{};
  pthread_create(&watcher, nullptr, end_with_the_socket, nullptr);
}

void allow_processor_seconds(double seconds) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto so_far = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  limit(RLIMIT_CPU, static_cast<std::int64_t>(std::ceil(so_far + seconds)) + 1);
}

// An alternate stack, because a plugin may have overflown the ordinary one.
void report_signals(std::uint64_t sequence) {
  last_words.sequence = sequence;
  stack_t stack{};
  stack.ss_sp = signal_stack;
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const int signal : kFatalSignals) sigaction(signal, &action, nullptr);
}

void set_default_float_mode() {
  std::fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
  _mm_setcsr(0x1f80);
#endif
}

std::uint32_t float_mode_changes() {
  std::uint32_t changes = 0;
  if (std::fegetround() != FE_TONEAREST) changes |= kRounding;
#if defined(__x86_64__)
  constexpr unsigned kZeroes = 0x8040;  // flush to zero, denormals are zero
  constexpr unsigned kMasks = 0x1f80;   // exceptions that do not trap
  constexpr unsigned kRound = 0x6000;
  const unsigned mode = _mm_getcsr();
  if ((mode & kZeroes) != 0) changes |= kFlushToZero;
  if ((mode & kMasks) != kMasks) changes |= kTraps;
  if ((mode & kRound) != 0) changes |= kRounding;
#endif
  return changes;
}

// Children are listed by the kernel, since a plugin may have forked without telling.
int end_children() {
  int status = 0;
  while (waitpid(-1, &status, WNOHANG) > 0) {  // those that have ended by themselves
  }
  const std::string path = "/proc/self/task/" + std::to_string(getpid()) + "/children";
  int ended = 0;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    for (int child = 0; std::fscanf(file, "%d", &child) == 1; ++ended) kill(child, SIGKILL);
    std::fclose(file);
  }
  while (ended > 0 && waitpid(-1, &status, 0) > 0) {
  }
  return ended;
}

}  // namespace ringlab::plugins
