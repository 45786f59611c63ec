// `ringlab plan --model`: a training step of a transformer, split over devices.
#pragma once

#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// The options that plan_model() takes, besides --tokens, the machine's and --json.
std::vector<OptionSpec> plan_model_options();

/// Weighs all splits and tells the fastest that fits. Exit code 4 where none does.
int plan_model(Arguments& arguments);

}  // namespace ringlab::cli
