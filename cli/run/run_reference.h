// `ringlab run reference`: what subjects are compared with, and the one right answer.
#pragma once

#include "cli/line/arguments.h"

namespace ringlab::cli {

/// The fp64 reference with its certified error; with --exact, every element correctly rounded.
/// Takes the problem's options, --backward, --threads, --output, --exact and --json.
int run_reference(Arguments& arguments);

}  // namespace ringlab::cli
