// A program that runs beside this one and answers over a socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

/// The folder of this program, beside which the programs that it starts are built and installed.
/// Empty where the system does not tell.
std::string program_folder();

/// A file descriptor, closed with its owner.
class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  ~File();
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// The file at a path, opened with these flags; -1 where it is not there or not ours to open.
/// std::system_error where the machine has no descriptor or memory for it.
File opened(const std::string& path, int flags);

/// A file in memory with these bytes; environment error where there is no memory.
File memory_file(const char* name, const std::vector<std::uint8_t>& bytes);
/// Seals a file: nobody, this process included, can change its bytes or its size from now on.
void seal(const File& file);
/// Fixes the size of a file, so that reading from it is safe; its bytes may change.
void fix_size(const File& file);
std::vector<std::uint8_t> contents(const File& file);

/// The name of a signal: "SIGSEGV".
std::string signal_text(int signal);

enum class Heard { reply, deadline, ended };

/// A process that calls confine(), as seen from the one that started it.
class ChildProcess {
 public:
  /// Starts `words`: a program's path and its arguments. Environment error where that fails.
  explicit ChildProcess(const std::vector<std::string>& words);
  /// Starts a copy of this process, which `fork_here` makes as fork() does: there kSocket is the
  /// other end of socket(), a stream, and the first three descriptors are in place.
  explicit ChildProcess(const std::function<pid_t()>& fork_here);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends a call; false when the process has ended.
  bool send(const CallMessage& message, const File& inputs, const File& outputs);
  /// Waits at most `seconds` for the reply to call `sequence`.
  Heard receive(Reply& reply, std::uint64_t sequence, double seconds);
  /// Ends the process and its descendants, if it has not ended by itself, and says how it ended:
  /// "it ended its process with exit code 3".
  std::string end();
  /// False in the copy that `fork_here` made.
  bool is_parent() const { return process_ != 0; }
  int socket() const { return socket_.get(); }
  /// The last bytes that it wrote to standard output and error; empty when it wrote nothing.
  std::string printed(std::int64_t most_bytes) const;
  /// The end of printed() in one line that fits a message: "first / second".
  std::string last_lines() const;
  /// Forgets the lines written so far.
  void clear_lines();

 private:
  /// The process's ends: of the socket, and of the file for its output.
  struct Ends {
    File socket, lines;
  };
  Ends open_ends(int type);

  pid_t process_ = -1;
  File socket_, written_;
};

}  // namespace ringlab::plugins
