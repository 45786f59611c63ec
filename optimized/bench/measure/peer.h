// A contender that lives in a process of its own.
//
// The protocol: once it is ready the peer writes a line "ready DESCRIPTION". Then it reads a line
// for each piece of work, works, and answers with a line: the seconds it took, or "cannot REASON".
// It ends when its standard input does. Its standard error is kept for messages.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ringlab::bench {

/// Names and values of environment variables.
using Environment = std::vector<std::pair<std::string, std::string>>;

struct PeerCommand {
  std::string name;                ///< for messages
  std::vector<std::string> words;  ///< the program, looked up in PATH, and its arguments
  Environment environment = {};    ///< set on top of this one's
  std::chrono::milliseconds start_timeout{120'000};
  std::chrono::milliseconds answer_timeout{60'000};
};

/// The limits within which an answer is believed.
struct Plausible {
  double least_seconds = 0;  ///< the least that is possible
  double threads = 1;        ///< processor time may be so many times what passed here
};

/// The process is in a group of its own, which is ended, by force if need be, with this object.
/// Whatever goes wrong is an environment error that names the peer and says what it last said;
/// from then on every call throws the same.
class Peer {
 public:
  /// Starts the peer and waits until it is ready.
  explicit Peer(PeerCommand command);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& description() const { return description_; }
  /// The seconds that the peer reports for `request`, one line: a finite number above 0, not more
  /// than passed here, and not less than is possible.
  double ask(const std::string& request, const Plausible& plausible = {});

 private:
  void start();
  std::string read_line(std::chrono::milliseconds timeout, const std::string& awaited);
  std::string last_words() const;
  std::string how_it_ended();
  [[noreturn]] void fail(const std::string& expected, const std::string& actual);
  void end();

  PeerCommand command_;
  int pid_ = -1;
  int channel_ = -1;  ///< its standard input and output
  int errors_ = -1;   ///< a file in memory
  std::string unread_ = {};
  std::string description_ = {};
  std::string failed_expected_ = {}, failed_actual_ = {};
};

}  // namespace ringlab::bench
