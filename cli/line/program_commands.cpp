// The commands of the program ringlab.
#include "cli/line/command.h"

namespace ringlab::cli {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {
      doctor_command(),
      list_command(),
      run_command(),
      verify_command(),
      bench_command(),
      trace_command(),
      compare_command(),
      plan_command(),
      simulate_command(),
      {.name = "lab", .summary = "exercises: write the stages yourself", .program = "ringlab-lab"}};
  return commands;
}

std::string_view program_name() { return "ringlab"; }

std::string program_help() {
  return "ringlab: exact ring attention, learned, proven and run\n\n"
         "Usage: ringlab COMMAND [options]\n\n" +
         commands_text() +
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

}  // namespace ringlab::cli
