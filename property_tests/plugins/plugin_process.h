// A plugin in a process of its own, called, watched, and started again when it has died.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "property_tests/endings.h"
#include "property_tests/plugins/arrays/arrays.h"
#include "property_tests/plugins/child_process.h"
#include "property_tests/subject.h"

namespace ringlab::plugins {

struct PluginOptions {
  double deadline_s = 10;  ///< of a call; RunOptions::timeout_s is not asked
  /// Time that crashes and hangs may cost: so much, or three deadlines, whichever is longer.
  double lost_s = 10;
  /// Limit of its address space; 0: half of this machine's memory.
  std::int64_t memory_bytes = 0;
  std::string host = {};  ///< the program that runs it; empty: the one beside this program
};

/// One run as a call over the socket: its message, the bytes of its arrays, and its outputs.
class ForeignCall {
 public:
  virtual ~ForeignCall() = default;
  virtual CallMessage& message() = 0;
  virtual const std::vector<std::uint8_t>& inputs() const = 0;
  virtual const std::vector<std::uint8_t>& outputs() const = 0;
  /// Reads the outputs from the file that the library wrote to. Returns the fault in it; empty when
  /// there is none.
  virtual std::string read(const std::vector<std::uint8_t>& file, RunResult& result) const = 0;
};

/// A kind of library that others write.
struct ForeignKind {
  const char* host;    ///< the program beside this one whose process it is loaded in
  const char* symbol;  ///< the symbol that it exports
  const char* advice;  ///< how to export it
  std::unique_ptr<ForeignCall> (*make_call)(const AttentionInput& input, const RunOptions& options,
                                            const ringlab_abilities& can, std::uint64_t sequence);
  /// Private bytes where the options set no limit; 0: half of what the machine has.
  std::int64_t most_memory_bytes = 0;
};
/// A library with the C interface of ringlab_plugin.h.
extern const ForeignKind kPluginKind;

/// Walls around the plugins of this process that the machine did not give; "" where all stand.
std::string missing_walls();

class PluginProcess {
 public:
  /// Loads the plugin. Input error when there is no such plugin, or none that fits; environment
  /// error when loading it crashed or hung.
  PluginProcess(std::string path, PluginOptions options, const ForeignKind& kind = kPluginKind);

  const Reply& introduction() const { return introduction_; }

  /// Makes one call. MachineError for a failure while memory, threads or descriptors were scarce;
  /// else SubjectLost for a crash or a hang, and environment error for whatever else it
  /// does wrong beside its numbers: an error code, bytes written where they should not be, elements
  /// left out, processes or a floating-point mode left behind. Unsupported when it says so, or once
  /// it has cost too much time with crashes and hangs.
  RunResult run(const AttentionInput& input, const RunOptions& options);

  /// The end of what its last call wrote to standard output and error; empty when it wrote nothing,
  /// and when the process ended in that call.
  std::string printed();

 private:
  void start();
  Reply exchange(const CallMessage& message, const File& inputs, const File& outputs);
  /// Waits for the reply until the deadline, and longer on a busy machine.
  Heard await(Reply& reply, const CallMessage& message);
  [[noreturn]] void lose(const Reply& reply, const std::string& what, double seconds,
                         verify::Ending ending = verify::Ending::crashed);
  [[noreturn]] void complain(const std::string& what) const;
  /// MachineError where something was scarce: then a failure says nothing about the plugin.
  void pass_on_scarcity(const Reply& reply, const std::string& what) const;
  void check_reply(const Reply& reply) const;

  std::string path_;
  PluginOptions options_;
  const ForeignKind& kind_;
  std::mutex mutex_;
  std::unique_ptr<ChildProcess> child_;
  Reply introduction_;
  std::uint64_t sequence_ = 0;
  double lost_s_ = 0;
};

}  // namespace ringlab::plugins
