// The program: picks the command, and turns what it throws into a message and an exit code.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/build_info.h"
#include "cli/line/command.h"
#include "cli/line/endings.h"
#include "cli/line/launcher.h"
#include "cli/line/output.h"
#include "cli/line/shell.h"
#include "optimized/cpu/vectors.h"
#include "optimized/cuda/stream_queues.h"
#include "reference/core/machine/machine_error.h"
#include "reference/core/machine/plain_text.h"

namespace {

constexpr int kAllGood = 0;
constexpr int kUsage = static_cast<int>(ringlab::ErrorKind::usage);
constexpr int kEnvironment = static_cast<int>(ringlab::ErrorKind::environment);

/// The JSON file that tells a failure besides standard error, and its command.
struct Listener {
  std::string command = {};
  std::optional<std::string> json = {};  ///< of --json
};

// Before the words are known to be good, only standard output is safe to write to.
bool wants_json_on_output(const std::vector<std::string>& words) {
  const auto option = std::ranges::find(words, "--json");
  const bool is_apart = option != words.end() && option + 1 != words.end() && option[1] == "-";
  return is_apart || std::ranges::find(words, "--json=-") != words.end();
}

bool is_any_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::ranges::find(words, word) != words.end();
}

int help(const std::vector<std::string>& words) {
  using namespace ringlab::cli;
  if (words.size() < 2 || words[0] != "help") {
    fmt::print("{}", program_help());
    return kAllGood;
  }
  if (words[1] == "--bash") {
    fmt::print("{}", bash_completion());
    return kAllGood;
  }
  if (words[1] == "--man") {
    fmt::print("{}", program_man_page(build_info().version, program_help()));
    return kAllGood;
  }
  const Command& command = find_command(words[1]);
  if (!command.program.empty()) become_sibling(command.program, {words[1], "--help"});
  const bool is_manual = words.size() > 2 && words[2] == "--man";
  fmt::print("{}", is_manual ? man_page(command, build_info().version) : command_help(command));
  return kAllGood;
}

int dispatch(const std::vector<std::string>& words, Listener& listener) {
  using namespace ringlab::cli;
  if (words.empty()) {
    std::fputs(program_help().c_str(), stderr);
    return kUsage;
  }
  if (is_any_of(words[0], {"help", "--help", "-h"})) return help(words);
  if (is_any_of(words[0], {"version", "--version", "-V"})) {
    fmt::print("ringlab {}\n", build_info().version);
    return kAllGood;
  }
  if (const char* vectors = std::getenv("RINGLAB_VECTORS")) ringlab::cpu::use_vectors(vectors);
  if (wants_json_on_output(words)) listener = {words[0], "-"};
  const Command& command = find_command(words[0]);
  if (!command.program.empty()) become_sibling(command.program, words);
  Arguments arguments(command, {words.begin() + 1, words.end()});
  if (arguments.help_wanted()) {
    fmt::print("{}", command_help(command));
    return kAllGood;
  }
  arguments.refuse_shared_files();
  arguments.read_from("seed", std::cin);
  if (arguments.given("json")) listener = {command.name, arguments.text("json")};
  return command.run(arguments);
}

int fail(const ringlab::Error& error, std::string_view said, const Listener& listener) {
  ringlab::cli::say(ringlab::plain_line(std::string(said)));
  if (listener.json) {
    ringlab::cli::write_failure(listener.command, *listener.json, error, error.what());
  }
  return error.exit_code();
}

int fail_with(const std::string& what, const std::string& hint, const Listener& listener) {
  const ringlab::Error error(ringlab::ErrorKind::environment, {.where = what, .hint = hint});
  return fail(error, error.what(), listener);
}

int guarded(const std::vector<std::string>& words) {
  Listener listener;
  try {
    return dispatch(words, listener);
  } catch (const ringlab::DeviceStuck& error) {  // destructors at the end would wait for it
    ringlab::cli::leave_stuck(error);
  } catch (const ringlab::Error& error) {
    return fail(error, ringlab::cli::said_in_turn(words, error), listener);
  } catch (const std::bad_alloc&) {
    if (ringlab::cli::standing_code() != ringlab::cli::kNoResults)
      return ringlab::cli::standing_code();
    return fail_with("out of memory", "Use fewer tokens, heads or ranks.", listener);
  } catch (const std::length_error&) {
    return fail_with("out of memory", "A tensor is larger than the address space.", listener);
  } catch (const std::exception& error) {
    return fail_with("failed: " + ringlab::plain_text(error.what()), "", listener);
  }
}

/// The exit code. Saying what went wrong may need memory that is not there, too.
int run(int argc, char** argv) {
  try {
    return guarded({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    ringlab::cli::say("out of memory.");
    return kEnvironment;
  }
}

/// Keeps freed memory for the next run: new memory costs a fault for every page.
void keep_freed_memory() {
#ifdef M_TRIM_THRESHOLD
  constexpr int kMostKept = 32 << 20;  // glibc's own limit; what is larger goes back at once
  ::mallopt(M_MMAP_THRESHOLD, kMostKept);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace

int main(int argc, char** argv) {
  ringlab::cli::take_precautions();
  keep_freed_memory();
  ringlab::cuda::ask_for_stream_queues();
  const int exit_code = run(argc, argv);
  // A full disk behind standard output is noticed here at the latest.
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written && exit_code == kAllGood) {
    fmt::print(stderr, "ringlab: standard output: expected to be written, found that it cannot.\n");
    return kEnvironment;
  }
  return exit_code;
}
