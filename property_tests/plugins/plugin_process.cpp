#include "property_tests/plugins/plugin_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "property_tests/plugins/plugin_call.h"
#include "property_tests/plugins/reply_text.h"
#include "property_tests/plugins/scarcity.h"
#include "reference/core/machine/machine_error.h"
#include "reference/io/input_file.h"

namespace ringlab::plugins {
namespace {

constexpr double kLoadSeconds = 30;
constexpr double kDeadlinesToLose = 3;

std::string host_program(const PluginOptions& options, const ForeignKind& kind) {
  std::string path = options.host;
  if (path.empty()) path = program_folder() + "/" + kind.host;
  if (access(path.c_str(), X_OK) == 0) return path;
  throw_environment_error({.where = "the program that runs plugins",
                           .expected = path,
                           .actual = "no such program",
                           .hint = "It is built and installed beside ringlab."});
}

/// Class, byte order and machine, the part of an ELF file's header that the linker is silent about.
struct ElfHeader {
  std::array<unsigned char, 20> bytes{};
  bool is_elf() const {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), 4) == "\177ELF";
  }
  bool same_machine(const ElfHeader& other) const {
    return bytes[4] == other.bytes[4] && bytes[5] == other.bytes[5] &&
           bytes[18] == other.bytes[18] && bytes[19] == other.bytes[19];
  }
};

ElfHeader elf_header(const std::string& path) {
  ElfHeader header;
  const io::InputFile file(path);
  const auto bytes = std::min<std::int64_t>(file.size(), std::ssize(header.bytes));
  const std::vector<std::byte> start = file.read(bytes);
  std::memcpy(header.bytes.data(), start.data(), start.size());
  return header;
}

/// The path with a slash: dlopen() looks for names without one in the system's folders.
std::string with_a_slash(const std::string& path) {
  return path.find('/') == std::string::npos ? "./" + path : path;
}

std::int64_t memory_limit(const PluginOptions& options, const ForeignKind& kind) {
  if (options.memory_bytes > 0) return options.memory_bytes;
  const std::int64_t half = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 2;
  return kind.most_memory_bytes > 0 ? std::min(half, kind.most_memory_bytes) : half;
}

std::string mode_text(std::uint32_t changes) {
  std::string text;
  const auto add = [&](std::uint32_t bit, const char* words) {
    if ((changes & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(words);
  };
  add(kRounding, "another rounding");
  add(kFlushToZero, "subnormals flushed to zero");
  add(kTraps, "floating-point traps");
  return text;
}

std::string hint_for(const std::string& why, const ForeignKind& kind) {
  if (why.find("no symbol") != std::string::npos) return kind.advice;
  if (why.find("of the interface") != std::string::npos ||
      why.find("bytes, and") != std::string::npos) {
    return "Build it again with this ringlab's ringlab_plugin.h.";
  }
  if (why.find("machine") != std::string::npos || why.find("ELF") != std::string::npos) {
    return "It has to be a shared library for this machine.";
  }
  return "Everything that it needs has to be installed; `ldd` lists it.";
}

/// Throws the dynamic linker's message, with a hint for the common reasons.
[[noreturn]] void throw_not_loadable(const std::string& path, const std::string& why,
                                     const ForeignKind& kind) {
  throw_input_error({.where = "plugin " + path,
                     .expected = fmt::format("a shared library with {}", kind.symbol),
                     .actual = why,
                     .hint = hint_for(why, kind)});
}

std::unique_ptr<ForeignCall> make_plugin_call(const AttentionInput& input,
                                              const RunOptions& options,
                                              const ringlab_abilities& can,
                                              std::uint64_t sequence) {
  return std::make_unique<PluginCall>(input, options, can, sequence);
}

std::mutex missing_mutex;
std::string missing_now;

}  // namespace

std::string missing_walls() {
  const std::lock_guard lock(missing_mutex);
  return missing_now;
}

const ForeignKind kPluginKind{
    .host = "ringlab-plugin-host",
    .symbol = "ringlab_plugin_v1",
    .advice =
        "Export `const ringlab_plugin* ringlab_plugin_v1(void)` with C linkage; "
        "docs/plugins.md has an example.",
    .make_call = make_plugin_call};

PluginProcess::PluginProcess(std::string path, PluginOptions options, const ForeignKind& kind)
    : path_(std::move(path)), options_(std::move(options)), kind_(kind) {
  std::error_code failure;  // status() throws nothing, for names that are too long, say
  const std::filesystem::file_status found = std::filesystem::status(path_, failure);
  if (found.type() == std::filesystem::file_type::not_found) {
    failure = std::make_error_code(std::errc::no_such_file_or_directory);
  }
  if (!std::filesystem::is_regular_file(found)) {
    throw_input_error(
        {.where = "plugin " + path_,
         .expected = "a shared library",
         .actual = failure ? "nothing there (" + failure.message() + ")" : "a folder"});
  }
  const ElfHeader header = elf_header(path_);
  if (!header.is_elf()) throw_not_loadable(path_, "no ELF file", kind_);
  if (!header.same_machine(elf_header("/proc/self/exe"))) {
    throw_not_loadable(path_, "one for another kind of machine", kind_);
  }
  start();
}

// The introduction of the first start counts: a plugin that says something else when it is started
// again would be judged by two measures.
void PluginProcess::start() {
  child_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{host_program(options_, kind_), with_a_slash(path_),
                               std::to_string(memory_limit(options_, kind_))});
  Reply reply;
  const Heard heard = child_->receive(reply, 0, kLoadSeconds);
  std::string why;
  if (heard == Heard::deadline) why = fmt::format("loading it took over {} s", kLoadSeconds);
  if (heard == Heard::ended) why = "while it was loaded, " + child_->end();
  if (heard == Heard::reply && reply.kind == ReplyKind::crashed) {
    why = "loading it crashed: " + signal_text(reply.signal);
  }
  if (heard != Heard::reply || reply.kind != ReplyKind::ready) {
    pass_on_scarcity(reply, why.empty() ? shown_text(reply.message) : why);
  }
  const std::string lines = child_->last_lines();
  if (heard == Heard::reply && reply.kind == ReplyKind::ready) {
    if (sequence_ == 0) introduction_ = reply;  // later introductions do not count
    const std::lock_guard lock(missing_mutex);
    missing_now = shown_text(reply.message);
    return;
  }
  child_.reset();
  if (why.empty()) throw_not_loadable(path_, shown_text(reply.message), kind_);
  throw_environment_error({.where = "plugin " + path_,
                           .expected = "to be loaded",
                           .actual = why,
                           .hint = lines.empty() ? "" : "Its last words: " + lines});
}

// Inputs are sealed before the plugin sees them; outputs keep their size, so that reading them
// cannot fail (SIGBUS) when the plugin shrinks its file.
RunResult PluginProcess::run(const AttentionInput& input, const RunOptions& options) {
  const std::lock_guard lock(mutex_);
  if (lost_s_ > std::max(options_.lost_s, kDeadlinesToLose * options_.deadline_s)) {
    throw verify::Unsupported(
        fmt::format("is no longer called: its crashes and hangs have taken {:.0f} s", lost_s_));
  }
  if (!child_) start();
  if (introduction_.mode_changes != 0) {
    complain("loading it left a changed floating-point mode behind: " +
             mode_text(introduction_.mode_changes));
  }
  const auto call = kind_.make_call(input, options, introduction_.can, ++sequence_);
  call->message().deadline_s = options_.deadline_s;
  const File inputs = memory_file("ringlab-inputs", call->inputs());
  const File outputs = memory_file("ringlab-outputs", call->outputs());
  seal(inputs);
  fix_size(outputs);
  const auto begin = std::chrono::steady_clock::now();
  check_reply(exchange(call->message(), inputs, outputs));
  RunResult result;
  const std::string complaint = call->read(contents(outputs), result);
  if (!complaint.empty()) complain(complaint);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::string PluginProcess::printed() {
  constexpr std::int64_t kMostBytes = 4000;
  const std::lock_guard lock(mutex_);
  return child_ ? child_->printed(kMostBytes) : "";
}

Heard PluginProcess::await(Reply& reply, const CallMessage& message) {
  Heard heard = Heard::deadline;
  double waited = 0, more = message.deadline_s;
  while (heard == Heard::deadline && more > 0) {
    heard = child_->receive(reply, message.sequence, more);
    waited += more;
    more = message.deadline_s * patience_here() - waited;
  }
  return heard;
}

// Lost time counts against the plugin: one that crashes in every case would else cost minutes.
Reply PluginProcess::exchange(const CallMessage& message, const File& inputs, const File& outputs) {
  child_->clear_lines();
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Reply reply;
  if (!child_->send(message, inputs, outputs)) {
    lose(reply, "it had ended since the last call: " + child_->end(), passed());
  }
  switch (await(reply, message)) {
    case Heard::reply:
      break;
    case Heard::deadline:
      lose(reply, fmt::format("it gave no answer within {:g} s", message.deadline_s),
           message.deadline_s, verify::Ending::timed_out);
    case Heard::ended:
      lose(reply, child_->end(), passed());
  }
  if (reply.kind != ReplyKind::crashed) return reply;
  const std::string touched = shown_text(reply.message);
  lose(reply,
       fmt::format("it crashed with {}{}{}", signal_text(reply.signal), touched.empty() ? "" : ": ",
                   touched),
       passed());
}

void PluginProcess::lose(const Reply& reply, const std::string& what, double seconds,
                         verify::Ending ending) {
  const std::unique_ptr<ChildProcess> gone = std::move(child_);
  pass_on_scarcity(reply, what);
  constexpr double kRestart = 0.005;  // starting it again
  lost_s_ += seconds + kRestart;
  const std::string lines = gone->last_lines();
  throw verify::SubjectLost(ending, {.where = path_,
                                     .expected = "an answer",
                                     .actual = what,
                                     .hint = lines.empty() ? "" : "Its last words: " + lines});
}

void PluginProcess::pass_on_scarcity(const Reply& reply, const std::string& what) const {
  std::string missing = scarce_here();
  if (reply.ran_out != 0) missing = "memory and descriptors";
  if (missing.empty()) return;
  throw MachineError({.where = path_,
                      .expected = "a machine that has " + missing + " for it",
                      .actual = "none left: " + what,
                      .hint = "Lift the limits of this process (ulimit -a)"});
}

void PluginProcess::complain(const std::string& what) const {
  throw_environment_error(
      {.where = path_, .expected = "an answer and nothing else", .actual = what});
}

// Order matters: the return code first, then processes and modes left behind.
void PluginProcess::check_reply(const Reply& reply) const {
  const std::string message = shown_text(reply.message);
  if (reply.kind == ReplyKind::no_memory) {
    throw MachineError({.where = path_,
                        .expected = "memory for its tensors",
                        .actual = "none left",
                        .hint = "Does the library free what it allocates? Else lift the limits of "
                                "this process (ulimit -a)"});
  }
  if (reply.kind == ReplyKind::no_addresses) {
    throw verify::Unsupported("was not called: the machine has no addresses for " + message +
                              ", whose elements lie far apart");
  }
  const bool refused = reply.code != RINGLAB_OK && reply.code != RINGLAB_UNSUPPORTED;
  if (reply.kind == ReplyKind::threw || refused) {
    pass_on_scarcity(reply, message.empty() ? "it failed" : message);
  }
  if (reply.kind == ReplyKind::threw) {
    complain("it threw an exception through its C interface: " + message);
  }
  if (reply.code == RINGLAB_UNSUPPORTED) {
    throw verify::Refused("says that it cannot" + (message.empty() ? "" : ": " + message));
  }
  if (reply.code != RINGLAB_OK) {
    complain(
        fmt::format("it returned error {}{}{}", reply.code, message.empty() ? "" : ": ", message));
  }
  if (reply.children != 0) {
    complain(fmt::format("it left {} running", reply.children == 1
                                                   ? "a process"
                                                   : fmt::format("{} processes", reply.children)));
  }
  if (reply.mode_changes != 0) {
    complain("it left a changed floating-point mode behind: " + mode_text(reply.mode_changes));
  }
}

}  // namespace ringlab::plugins
