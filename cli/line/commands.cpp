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

std::string commands_text() {
  std::string text = "Commands:\n";
  for (const Command& command : all_commands()) {
    text += fmt::format("  {:<8}  {}\n", command.name, command.summary);
  }
  return text;
}

std::string command_help(const Command& command) {
  std::string text =
      fmt::format("{}\n\nUsage: {} {}{}{} [options]\n\n", command.summary, program_name(),
                  command.name, command.operands.empty() ? "" : " ", command.operands);
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
