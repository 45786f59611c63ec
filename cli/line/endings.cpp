#include "cli/line/endings.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <new>
#include <system_error>

#include "reference/core/machine/ending_signals.h"
#include "reference/core/machine/machine_failure.h"
#include "reference/io/atomic_file.h"

namespace ringlab::cli {
namespace {

std::atomic<int> code_of_results = kNoResults;

constexpr int kSignals[] = {SIGINT, SIGTERM};
std::atomic<int> interrupted_by = 0;  // lock-free: a signal handler sets it

std::atomic<bool> has_words = true;
pid_t program = 0;
std::atomic<pid_t> ender = 0;  ///< the thread that ends the program

/// Writes "ringlab: ", the words and a line end to standard error in one piece.
void write_line(std::initializer_list<std::string_view> words) {
  std::array<iovec, 5> parts;
  std::size_t count = 0;
  const auto add = [&](std::string_view word) {
    parts[count++] = {const_cast<char*>(word.data()), word.size()};
  };
  add("ringlab: ");
  for (const std::string_view word : words) add(word);
  add("\n");
  if (::writev(STDERR_FILENO, parts.data(), static_cast<int>(count)) < 0) return;
}

/// True for the thread that ends the program already: its last word went to a pipe without a reader,
/// say, and the signal of that pipe comes before the one that ends it.
bool is_ending() {
  pid_t before = 0;
  return !ender.compare_exchange_strong(before, ::gettid()) && before == ::gettid();
}

/// Ends the program by `signal`, with a word and without the files that it has not completed. A
/// child that is about to become another program has none.
void end_by(int signal) {
  if (::getpid() == program && !is_ending()) {
    io::discard_uncommitted_files();
    if (has_words) write_line({"ended by SIG", short_name_of_signal(signal), "."});
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // comes when the handler has returned
}

void note_interruption(int signal) {
  if (interrupted_by.exchange(signal) != 0) end_by(signal);
}

void on_signal(int signal, void (*handler)(int)) {
  struct sigaction action {};
  sigfillset(&action.sa_mask);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

[[noreturn]] void leave_at_once(std::string_view message) noexcept {
  say(message);
  io::discard_uncommitted_files();
  std::_Exit(static_cast<int>(ErrorKind::environment));
}

/// Ends the program with a message, made without memory, if the machine caused the exception.
[[noreturn]] void end_without_a_handler() noexcept {
  try {
    if (std::current_exception()) throw;
  } catch (const MachineError& error) {
    leave_at_once(error.what());
  } catch (const std::bad_alloc&) {
    if (standing_code() != kNoResults && std::fflush(stdout) == 0) std::_Exit(standing_code());
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
  // open() takes the lowest free number, which is `descriptor`.
  if (::open("/dev/null", way) < 0) return;
}

}  // namespace

void say(std::string_view message) noexcept {
  std::fflush(stderr);
  write_line({message});
}

int standing_code() noexcept { return code_of_results; }
void let_results_stand(int code) noexcept { code_of_results = code; }

void leave_words_to_others() noexcept { has_words = false; }

void take_precautions() noexcept {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) keep_closed(descriptor);
  std::signal(SIGXFSZ, SIG_IGN);
  program = ::getpid();
  for (const int signal : kEndingSignals) {
    if (!is_ignored(signal)) on_signal(signal, end_by);
  }
  std::set_terminate(end_without_a_handler);
}

Interruption::Interruption() {
  interrupted_by = 0;
  for (const int signal : kSignals) on_signal(signal, note_interruption);
}

Interruption::~Interruption() {
  for (const int signal : kSignals) on_signal(signal, end_by);
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
