// `ringlab verify SUBJECT --tomography`: the softmax matrix of a black box, next to the exact one.
#pragma once

#include "cli/line/arguments.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// Returns the exit code: 1 when some weight is wrong by more than rounding.
int run_tomography(Arguments& arguments, Output& output);

}  // namespace ringlab::cli
