// `ringlab run --auto`: layout, schedule and slots as a plan chooses them.
#pragma once

#include "cli/line/arguments.h"
#include "cli/run/run_plan.h"

namespace ringlab::cli {

OptionSpec auto_option();

/// Puts the best way of the machine of --auto, if given, into the options of a plan whose input is
/// known. Usage error for subjects that have no ways, and beside options that it would choose.
void choose_way(Arguments& arguments, RunPlan& plan);

}  // namespace ringlab::cli
