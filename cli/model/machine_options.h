// From the command line to a machine of the model: a named one, with figures of one's own.
#pragma once

#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "reference/model/machine.h"

namespace ringlab::cli {

/// The options that take_machine() takes.
std::vector<OptionSpec> machine_options();

model::Machine take_machine(Arguments& arguments);

/// The figures of a machine with their units, and where they come from.
Json machine_figures(const model::Machine& machine);

}  // namespace ringlab::cli
