// The one command of the program ringlab-bench, which `ringlab bench` starts.
#include "cli/line/command.h"

namespace ringlab::cli {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {bench_command()};
  return commands;
}

}  // namespace ringlab::cli
