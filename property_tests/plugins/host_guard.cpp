#include "property_tests/plugins/host_guard.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <csignal>

#include "property_tests/plugins/host_memory.h"
#include "property_tests/plugins/scarcity.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ringlab::plugins {
namespace {

constexpr int kFatalSignals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGXCPU, SIGSYS, SIGTRAP};
constexpr std::size_t kSignalStackBytes = 64 * 1024;

Reply last_words;
bool is_limited_from_outside = false;  // to fewer addresses than ringlab leaves it
alignas(16) unsigned char signal_stack[kSignalStackBytes];

/// True when the fault was a write, where the processor says so.
bool was_a_write([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  constexpr long long kWrite = 2;  // bit of the page fault's error code
  return (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
#elif defined(__aarch64__)
  // The instruction says so: bit 22 is set in loads, in those that extend a sign bit 23.
  const mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  if (machine.pc == machine.fault_address) return false;  // it could not be read itself
  const std::uint32_t word = *reinterpret_cast<const std::uint32_t*>(machine.pc);
  const bool extends_sign = (word >> 24 & 0x3e) == 0x38 && (word >> 23 & 1) != 0;
  return (word >> 22 & 1) == 0 && !extends_sign;
#else
  return false;
#endif
}

// Does only what is safe in a signal handler: no memory, no locks. The message is made in a buffer
// that was there before.
void on_fatal_signal(int signal, siginfo_t* info, void* context) {
  last_words.kind = ReplyKind::crashed;
  last_words.signal = signal;
  last_words.message[0] = '\0';
  last_words.ran_out = memory_is_scarce() ? 1 : 0;
  if (signal == SIGSEGV || signal == SIGBUS) {
    describe_address(info->si_addr, was_a_write(context), last_words.message,
                     sizeof(last_words.message));
  }
  send(kSocket, &last_words, sizeof(last_words), MSG_NOSIGNAL);
  _exit(128 + signal);
}

}  // namespace

void note_limits_from_outside(std::int64_t address_bytes) {
  rlimit given{};
  is_limited_from_outside =
      getrlimit(RLIMIT_AS, &given) == 0 && given.rlim_cur < static_cast<rlim_t>(address_bytes);
}

bool memory_is_scarce() { return is_limited_from_outside && addresses_are_scarce(); }

void allow_processor_seconds(double seconds) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto so_far = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  rlimit limits{};
  getrlimit(RLIMIT_CPU, &limits);
  limits.rlim_cur = std::min(static_cast<rlim_t>(std::ceil(so_far + seconds)) + 1, limits.rlim_max);
  setrlimit(RLIMIT_CPU, &limits);
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
#elif defined(__aarch64__)
  constexpr std::uint64_t kZeroes = std::uint64_t{1} << 24;  // flush to zero
  constexpr std::uint64_t kTrapped = 0x9f00;                 // exceptions that trap
  std::uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  if ((mode & kZeroes) != 0) changes |= kFlushToZero;
  if ((mode & kTrapped) != 0) changes |= kTraps;
#endif
  return changes;
}

}  // namespace ringlab::plugins
