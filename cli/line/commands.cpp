// Finding a command by its name, the program that runs it, and the text of its help.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/line/arguments.h"
#include "cli/line/command.h"
#include "cli/line/words.h"
#include "property_tests/plugins/child_process.h"
#include "reference/core/error.h"
#include "reference/core/options/near_word.h"

namespace ringlab::cli {

const Command& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  throw_usage_error({"command", fmt::format("one of {}", fmt::join(names, ", ")),
                     fmt::format("\"{}\"", name), did_you_mean(name, names)});
}

std::string program_help() {
  std::string text =
      "ringlab: exact ring attention, learned, proven and run\n\n"
      "Usage: ringlab COMMAND [options]\n\nCommands:\n";
  for (const Command& command : all_commands()) {
    text += fmt::format("  {:<8}  {}\n", command.name, command.summary);
  }
  return text +
         "\nOptions:\n"
         "  --help     this text; `ringlab COMMAND --help` or `ringlab help COMMAND` for one "
         "command\n"
         "  --version  the version\n\n"
         "`ringlab help --bash` prints a completion for bash,\n"
         "`ringlab help --man` and `ringlab help COMMAND --man` manual pages.\n\n"
         "Exit codes:\n"
         "  0  all good\n"
         "  1  a subject is wrong\n"
         "  2  the command line is wrong\n"
         "  3  the input data is wrong\n"
         "  4  the environment failed: no device, a rank died, out of memory, a deadline passed\n\n"
         "Examples:\n"
         "  ringlab doctor\n"
         "  ringlab verify --text README.md --html report.html\n"
         "  ringlab run ring --text README.md --ranks 4 --mask causal --check\n";
}

std::string command_help(const Command& command) {
  std::string text =
      fmt::format("{}\n\nUsage: ringlab {}{}{} [options]\n\n", command.summary, command.name,
                  command.operands.empty() ? "" : " ", command.operands);
  text += option_help(command);
  if (!command.more.empty()) text += "\n" + command.more + "\n";
  text += "\nExamples:\n";
  for (const std::string& example : command.examples) text += "  " + example + "\n";
  return text;
}

void become_sibling(const std::string& name, const std::vector<std::string>& words) {
  const std::string path = plugins::program_folder() + "/" + name;
  std::vector<std::string> owned = words;
  owned.insert(owned.begin(), path);
  std::vector<char*> arguments;
  for (std::string& word : owned) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  const int why = errno;
  throw_environment_error({.where = "the program " + name,
                           .expected = path,
                           .actual = std::strerror(why),
                           .hint = "Build it: cmake --build build --target " + name + "."});
}

}  // namespace ringlab::cli
