// `ringlab_goals`: the goals of docs/performance.md and docs/gpu.md, measured side by side in one run.
#include "optimized/bench/goals.h"

namespace ringlab::cli {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {bench::cpu_command(), bench::gpu_command()};
  return commands;
}

std::string_view program_name() { return "ringlab_goals"; }

std::string program_help() {
  return "ringlab_goals: how near kernels and rings come to what the machine can do\n\n"
         "Usage: ringlab_goals COMMAND [options]\n\n" +
         commands_text() + "\n`ringlab_goals COMMAND --help` shows the options of one.\n";
}

}  // namespace ringlab::cli
