// The commands of the program ringlab.
#include "cli/line/command.h"

namespace ringlab::cli {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {
      doctor_command(),
      list_command(),
      run_command(),
      verify_command(),
      {.name = "bench", .summary = std::string(kBenchSummary), .program = "ringlab-bench"},
      trace_command(),
      compare_command(),
      plan_command(),
      simulate_command(),
      {.name = "lab", .summary = "exercises: write the stages yourself", .program = "ringlab-lab"}};
  return commands;
}

}  // namespace ringlab::cli
