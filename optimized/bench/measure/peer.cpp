#include "optimized/bench/measure/peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <thread>

#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestLine = 4096;
constexpr std::chrono::milliseconds kTimeToLeave{500};

/// This process's environment with some names set anew.
std::vector<std::string> environment_with(const Environment& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const auto is_changed = [&](const auto& change) {
      return text.starts_with(change.first + "=");
    };
    if (std::ranges::none_of(changes, is_changed)) all.push_back(text);
  }
  for (const auto& [name, value] : changes) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

/// Gives a peer its standard streams, a process group, and no signal blocked or ignored.
class SpawnSettings {
 public:
  SpawnSettings(int channel, int errors) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, channel, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, channel, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none, defaults;
    ::sigemptyset(&none);
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    constexpr int kFlags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(kFlags));
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  /// Starts a process; returns 0 or an errno.
  int spawn(pid_t& pid, std::vector<std::string> words, std::vector<std::string> environment) {
    return ::posix_spawnp(&pid, words[0].c_str(), &actions_, &attributes_, pointers(words).data(),
                          pointers(environment).data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// The text without control characters, and short, for a message of one line.
std::string printable(std::string text) {
  std::erase_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  constexpr std::size_t kMost = 200;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "…";
}

/// Leaves the exit status of an ended process: until it is taken, its group's number stays its own.
bool has_ended(int pid) {
  siginfo_t info = {};
  const int flags = WEXITED | WNOHANG | WNOWAIT;
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, flags) == 0 && info.si_pid == pid;
}

/// True when the process ended by itself within `time`.
bool leaves_within(int pid, std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (!has_ended(pid)) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Ends all that is left of the process's group; returns the process's status.
int end_group(int pid) {
  int status = 0;
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return status;
}

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

}  // namespace

Peer::Peer(PeerCommand command) : command_(std::move(command)) {
  try {
    start();
    const std::string line = read_line(command_.start_timeout, "that it is ready");
    if (line != "ready" && !line.starts_with("ready ")) {
      fail("a first line that begins with 'ready'", "'" + printable(line) + "'");
    }
    description_ = printable(line.substr(std::min<std::size_t>(line.size(), 6)));
  } catch (...) {
    end();
    throw;
  }
}

Peer::~Peer() { end(); }

void Peer::start() {
  int ends[2] = {-1, -1};
  errors_ = ::memfd_create("errors of a peer", MFD_CLOEXEC);
  if (errors_ < 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    fail("to be started", std::strerror(errno));
  }
  channel_ = ends[0];
  pid_t pid = -1;
  const int problem = SpawnSettings(ends[1], errors_)
                          .spawn(pid, command_.words, environment_with(command_.environment));
  ::close(ends[1]);
  if (problem != 0) fail("to be started: " + command_.words[0], std::strerror(problem));
  pid_ = pid;
}

std::string Peer::read_line(std::chrono::milliseconds timeout, const std::string& awaited) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    const std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() > kLongestLine) fail("a line with " + awaited, "a line without an end");
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting = {.fd = channel_, .events = POLLIN, .revents = 0};
    const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left) + 1) : 0;
    if (ready == 0) {
      fail(fmt::format("{} within {} ms", awaited, timeout.count()), "nothing" + last_words());
    }
    if (ready < 0 && errno == EINTR) continue;
    char buffer[1024];
    const ssize_t got = ready < 0 ? -1 : ::recv(channel_, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(awaited, how_it_ended() + last_words());
    unread_.append(buffer, static_cast<std::size_t>(got));
  }
}

double Peer::ask(const std::string& request, const Plausible& plausible) {
  if (!failed_actual_.empty()) fail(failed_expected_, failed_actual_);
  char early[64];
  const ssize_t got = ::recv(channel_, early, sizeof early, MSG_DONTWAIT);
  if (got > 0) unread_.append(early, static_cast<std::size_t>(got));
  if (!unread_.empty()) fail("silence until it is asked", "'" + printable(unread_) + "'");
  const auto start = Clock::now();
  const std::string line = request + "\n";
  if (::send(channel_, line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    fail("that it takes work", how_it_ended() + last_words());
  }
  const std::string answer = read_line(command_.answer_timeout, "the seconds of '" + request + "'");
  const double passed = std::chrono::duration<double>(Clock::now() - start).count();
  if (answer.starts_with("cannot ")) fail("'" + request + "' done", printable(answer));
  double seconds = 0;
  const char* const last = answer.data() + answer.size();
  const auto [end, problem] = std::from_chars(answer.data(), last, seconds);
  if (problem != std::errc() || end != last || !std::isfinite(seconds) || seconds <= 0) {
    fail("the seconds of '" + request + "'", "'" + printable(answer) + "'");
  }
  constexpr double kClocksDiffer = 0.01;
  if (seconds > plausible.threads * (passed + kClocksDiffer)) {
    fail(fmt::format("at most the {:.3g} s that passed", passed), answer + " s");
  }
  if (seconds < plausible.least_seconds) {
    fail(fmt::format("at least {:.3g} s, the least that '{}' can take", plausible.least_seconds,
                     request),
         answer + " s");
  }
  return seconds;
}

std::string Peer::last_words() const {
  const off_t size = errors_ < 0 ? 0 : ::lseek(errors_, 0, SEEK_END);
  constexpr off_t kTail = 1000;
  std::string text(static_cast<std::size_t>(std::clamp<off_t>(size, 0, kTail)), '\0');
  const ssize_t got = text.empty() ? 0
                                   : ::pread(errors_, text.data(), text.size(),
                                             size - static_cast<off_t>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (text.ends_with('\n')) text.pop_back();
  const std::size_t line = text.rfind('\n');
  if (line != std::string::npos) text.erase(0, line + 1);
  return text.empty() ? "" : "; it said: " + printable(text);
}

std::string Peer::how_it_ended() {
  if (!leaves_within(pid_, kTimeToLeave)) return "that it has closed its output";
  const int status = end_group(pid_);
  pid_ = -1;
  if (WIFSIGNALED(status)) return fmt::format("that signal {} ended it", WTERMSIG(status));
  return fmt::format("that it has ended with exit code {}", WEXITSTATUS(status));
}

void Peer::fail(const std::string& expected, const std::string& actual) {
  failed_expected_ = expected;
  failed_actual_ = actual;
  end();
  throw_environment_error(
      {.where = "peer " + command_.name, .expected = expected, .actual = actual});
}

void Peer::end() {
  close_if_open(channel_);
  if (pid_ > 0) {
    leaves_within(pid_, kTimeToLeave);
    end_group(pid_);
  }
  pid_ = -1;
  close_if_open(errors_);
}

}  // namespace ringlab::bench
