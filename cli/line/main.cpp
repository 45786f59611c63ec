// The program: picks the command, and turns what it throws into a message and an exit code.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/build_info.h"
#include "cli/line/command.h"
#include "cli/line/endings.h"
#include "cli/line/launcher.h"
#include "optimized/cpu/vectors.h"
#include "reference/core/machine/plain_text.h"
#include "reference/core/machine_error.h"

namespace {

constexpr int kAllGood = 0;
constexpr int kUsage = static_cast<int>(ringlab::ErrorKind::usage);
constexpr int kEnvironment = static_cast<int>(ringlab::ErrorKind::environment);

int dispatch(const std::vector<std::string>& words) {
  using namespace ringlab::cli;
  if (words.empty()) {
    std::fputs(program_help().c_str(), stderr);
    return kUsage;
  }
  if (words[0] == "--help" || words[0] == "-h") {
    fmt::print("{}", program_help());
    return kAllGood;
  }
  if (words[0] == "--version") {
    fmt::print("ringlab {}\n", build_info().version);
    return kAllGood;
  }
  if (const char* vectors = std::getenv("RINGLAB_VECTORS")) ringlab::cpu::use_vectors(vectors);
  const Command& command = find_command(words[0]);
  if (!command.program.empty()) become_sibling(command.program, words);
  Arguments arguments(command, {words.begin() + 1, words.end()});
  if (arguments.help_wanted()) {
    fmt::print("{}", command_help(command));
    return kAllGood;
  }
  arguments.refuse_shared_files();
  return command.run(arguments);
}

int report(std::string_view message, int exit_code) {
  ringlab::cli::say(message);
  return exit_code;
}

int guarded(const std::vector<std::string>& words) {
  try {
    return dispatch(words);
  } catch (const ringlab::DeviceStuck& error) {  // destructors at the end would wait for it
    ringlab::cli::leave_stuck(error);
  } catch (const ringlab::Error& error) {
    return report(ringlab::cli::said_in_turn(words, error), error.exit_code());
  } catch (const std::bad_alloc&) {
    return report("out of memory. Use fewer tokens, heads or ranks.", kEnvironment);
  } catch (const std::length_error&) {
    return report("out of memory: a tensor larger than the address space.", kEnvironment);
  } catch (const std::exception& error) {
    return report("failed: " + ringlab::plain_text(error.what()), kEnvironment);
  }
}

/// The exit code. Saying what went wrong may need memory that is not there, too.
int run(int argc, char** argv) {
  try {
    return guarded({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    return report("out of memory.", kEnvironment);
  }
}

}  // namespace

int main(int argc, char** argv) {
  ringlab::cli::take_precautions();
  const int exit_code = run(argc, argv);
  // A full disk behind standard output is noticed here at the latest.
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written && exit_code == kAllGood) {
    return report("standard output: expected to be written, found that it cannot.", kEnvironment);
  }
  return exit_code;
}
