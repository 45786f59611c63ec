#include "property_tests/plugins/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "property_tests/plugins/environment.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/machine/machine_failure.h"

namespace ringlab::plugins {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void throw_refused(const std::string& what, int error) {
  throw MachineError(
      {.where = "the process of a plugin", .expected = what, .actual = std::strerror(error)});
}

std::int64_t size_of(int descriptor) {
  return std::max<std::int64_t>(0, lseek(descriptor, 0, SEEK_END));
}

void write_all(int descriptor, const std::uint8_t* bytes, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t written =
        pwrite(descriptor, bytes + done, count - done, static_cast<off_t>(done));
    if (written <= 0) throw_refused("memory for a plugin's tensors", errno);
    done += static_cast<std::size_t>(written);
  }
}

/// Puts standard input, output and error, and the socket, where the program expects them.
class Redirections {
 public:
  Redirections(int socket, int written) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, written, 1);
    posix_spawn_file_actions_adddup2(&actions_, written, 2);
    posix_spawn_file_actions_adddup2(&actions_, socket, kSocket);
  }
  ~Redirections() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

pid_t start(const std::vector<std::string>& words, int socket, int written) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const Redirections redirections(socket, written);
  std::vector<char*> environment = environment_for_others();
  pid_t process = -1;
  const int error = posix_spawn(&process, words.front().c_str(), redirections.get(), nullptr,
                                arguments.data(), environment.data());
  if (error != 0) throw_refused("to start " + words.front(), error);
  return process;
}

}  // namespace

std::string program_folder() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

// Sealed memory files: the plugin maps the very pages, so that tensors are not copied through the
// socket, and it can neither shrink nor change the inputs.
File memory_file(const char* name, const std::vector<std::uint8_t>& bytes) {
  File file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) throw_refused("memory for a plugin's tensors", errno);
  write_all(file.get(), bytes.data(), bytes.size());
  return file;
}

File opened(const std::string& path, int flags) {
  File file(open(path.c_str(), flags | O_CLOEXEC));
  if (file.get() < 0) throw_if_of_machine(errno, path);
  return file;
}

void seal(const File& file) {
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

void fix_size(const File& file) {
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

std::vector<std::uint8_t> contents(const File& file) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size_of(file.get())));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got <= 0) throw_refused("to read a plugin's outputs", errno);
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

// SOCK_SEQPACKET keeps messages whole: a reply is all there or not at all.
ChildProcess::ChildProcess(const std::vector<std::string>& words) {
  const Ends ends = open_ends(SOCK_SEQPACKET);
  process_ = start(words, ends.socket.get(), ends.lines.get());
}

// The copy sets up its descriptors itself, as start() has the system do for a new program.
ChildProcess::ChildProcess(const std::function<pid_t()>& fork_here) {
  const Ends ends = open_ends(SOCK_STREAM);
  process_ = fork_here();
  if (process_ < 0) throw_refused("a copy of this process", errno);
  if (process_ > 0) return;
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  dup2(ends.lines.get(), 1);
  dup2(ends.lines.get(), 2);
  dup2(ends.socket.get(), kSocket);
}

ChildProcess::Ends ChildProcess::open_ends(int type) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) throw_refused("a socket", errno);
  socket_ = File(ends[0]);
  const File other(ends[1]);
  written_ = File(memfd_create("ringlab-plugin-lines", MFD_CLOEXEC));
  // Descriptor 3 itself would keep its close-on-exec flag.
  Ends theirs{.socket = File(fcntl(other.get(), F_DUPFD_CLOEXEC, kSocket + 1)),
              .lines = File(fcntl(written_.get(), F_DUPFD_CLOEXEC, kSocket + 1))};
  if (theirs.socket.get() < 0 || theirs.lines.get() < 0) throw_refused("a socket", errno);
  fcntl(theirs.lines.get(), F_SETFL, O_APPEND);
  return theirs;
}

ChildProcess::~ChildProcess() { end(); }

// The descriptors of both files travel with the message (SCM_RIGHTS).
bool ChildProcess::send(const CallMessage& message, const File& inputs, const File& outputs) {
  const int files[2] = {inputs.get(), outputs.get()};
  iovec part{.iov_base = const_cast<CallMessage*>(&message), .iov_len = sizeof(message)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(files))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  cmsghdr* attached = CMSG_FIRSTHDR(&header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof(files));
  std::memcpy(CMSG_DATA(attached), files, sizeof(files));
  return sendmsg(socket_.get(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(message));
}

Heard ChildProcess::receive(Reply& reply, std::uint64_t sequence, double seconds) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const double left = std::chrono::duration<double>(until - Clock::now()).count();
    if (left <= 0) return Heard::deadline;
    pollfd socket{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int wait_ms = static_cast<int>(std::min(left * 1000 + 1, 1e9));
    if (poll(&socket, 1, wait_ms) <= 0) continue;
    const ssize_t bytes = recv(socket_.get(), &reply, sizeof(reply), MSG_DONTWAIT);
    if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR)) return Heard::ended;
    // Stray threads of a plugin may write on descriptor 3, too: that is no reply.
    if (bytes == static_cast<ssize_t>(sizeof(reply)) && reply.sequence == sequence) {
      return Heard::reply;
    }
  }
}

// The process supervises another that runs the foreign code. When the socket is closed it ends that
// and its descendants, and then itself in the same way. It is killed only where it cannot.
std::string ChildProcess::end() {
  if (process_ <= 0) return "";
  shutdown(socket_.get(), SHUT_RDWR);
  constexpr std::chrono::seconds kPatience{5};
  const auto until = Clock::now() + kPatience;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(process_, &status, WNOHANG)) == 0 && Clock::now() < until) usleep(200);
  if (ended == 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  process_ = -1;
  if (ended <= 0) return "it did not end by itself";
  if (WIFSIGNALED(status)) return "it was ended by " + signal_text(WTERMSIG(status));
  return fmt::format("it ended its process with exit code {}", WEXITSTATUS(status));
}

std::string ChildProcess::printed(std::int64_t most_bytes) const {
  const std::int64_t size = size_of(written_.get());
  std::string text(static_cast<std::size_t>(std::min(size, most_bytes)), '\0');
  const ssize_t got =
      pread(written_.get(), text.data(), text.size(), static_cast<off_t>(size - std::ssize(text)));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ') letter = letter == '\n' ? '\n' : '?';
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Lines of its own could look like lines of a report.
std::string ChildProcess::last_lines() const {
  constexpr std::int64_t kMostBytes = 300;
  std::string text;
  for (const char letter : printed(kMostBytes)) {
    text += letter == '\n' ? " / " : std::string(1, letter);
  }
  return text;
}

void ChildProcess::clear_lines() {
  if (ftruncate(written_.get(), 0) != 0) return;  // the lines stay then, no harm done
}

}  // namespace ringlab::plugins
