// `ringlab verify --replay TOKEN`.
#pragma once

#include "cli/line/arguments.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// Runs the one case of the token again and prints what came of it. Exit code 1 when it is broken.
int replay_token(Arguments& arguments, Output& output);

}  // namespace ringlab::cli
