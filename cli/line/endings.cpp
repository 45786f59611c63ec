#include "cli/line/endings.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "reference/core/machine/machine_failure.h"

namespace ringlab::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
std::atomic<int> interrupted_by = 0;  // lock-free: a signal handler sets it

void note_interruption(int signal) { interrupted_by = signal; }

[[noreturn]] void leave_at_once(std::string_view message) noexcept {
  say(message);
  std::_Exit(static_cast<int>(ErrorKind::environment));
}

/// Says what the exception was where it is the machine's, and needs no memory for that.
[[noreturn]] void end_without_a_handler() noexcept {
  try {
    if (std::current_exception()) throw;
  } catch (const MachineError& error) {
    leave_at_once(error.what());
  } catch (const std::bad_alloc&) {
    leave_at_once("out of memory.");
  } catch (const std::system_error& error) {
    if (is_of_machine(error.code().value())) leave_at_once(error.what());
  } catch (...) {  // a mistake of this program
  }
  std::abort();
}

/// Takes the number of a descriptor that was closed, in a way that leaves it useless.
void keep_closed(int descriptor) {
  if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) return;
  const int way = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
  // The lowest free number is this one.
  if (::open("/dev/null", way) < 0) return;
}

}  // namespace

void say(std::string_view message) noexcept {
  iovec parts[] = {{const_cast<char*>("ringlab: "), 9},
                   {const_cast<char*>(message.data()), message.size()},
                   {const_cast<char*>("\n"), 1}};
  std::fflush(stderr);
  if (::writev(STDERR_FILENO, parts, 3) < 0) return;
}

void take_precautions() noexcept {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) keep_closed(descriptor);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(end_without_a_handler);
}

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
  if (::isatty(STDERR_FILENO) == 1) std::fputs("\r\x1b[K", stderr);  // over a bar
  say(error.what());
  std::fflush(nullptr);
  std::_Exit(error.exit_code());
}

}  // namespace ringlab::cli
