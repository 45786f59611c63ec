// `ringlab plan --model`: a training step of a transformer, split over devices.
#pragma once

#include "cli/line/arguments.h"

namespace ringlab::cli {

/// Weighs all splits and tells the fastest that fits. Exit code 4 where none does.
int plan_model(Arguments& arguments);

}  // namespace ringlab::cli
