// A subcommand as a value: what it is called, what it takes, and what it does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringlab::cli {

class Arguments;

/// One `--name`. Every option may be given once.
struct OptionSpec {
  std::string name;   ///< without the dashes
  std::string value;  ///< what its value is called in the help; empty for a switch
  std::string help;
  std::string applies = {};  ///< when it has an effect, for the message when it would have none
};

struct Command {
  std::string name;
  std::string summary;        ///< one line for the list of commands
  std::string operands = {};  ///< "SUBJECT", "[SUBJECT…]", or empty when it takes none
  int min_operands = 0;
  int max_operands = 0;
  std::vector<OptionSpec> options = {};        ///< `--help` comes on its own
  std::vector<std::string> examples = {};      ///< whole command lines
  std::string more = {};                       ///< closing paragraph of the help
  int (*run)(Arguments& arguments) = nullptr;  ///< returns the exit code
  std::string program = {};  ///< the program beside this one that runs it, in place of `run`
};

Command doctor_command();
Command list_command();
Command run_command();
Command verify_command();
Command bench_command();
Command trace_command();
Command compare_command();
Command plan_command();
Command simulate_command();

/// Every command of this program, in the order of the help.
const std::vector<Command>& all_commands();
/// Usage error that suggests the nearest name when there is no such command.
const Command& find_command(const std::string& name);

/// Becomes the program `name` beside this one, with these words. Returns only by an environment
/// error: when there is no such program, or it cannot be started.
[[noreturn]] void become_sibling(const std::string& name, const std::vector<std::string>& words);

/// The name of this program: "ringlab".
std::string_view program_name();
/// The text of `ringlab --help`.
std::string program_help();
/// The names of all commands with their summaries, for program_help().
std::string commands_text();
/// The text of `ringlab COMMAND --help`.
std::string command_help(const Command& command);

}  // namespace ringlab::cli
