// Sizes of `ringlab bench`: one number, a list or a range for each, and the product of them all.
#pragma once

#include <vector>

#include "cli/line/arguments.h"

namespace ringlab::cli {

/// --tokens, --heads, --head-dim and --ranks as options that take several values.
std::vector<OptionSpec> size_options();

/// The command line with one size in the place of several, for each; the tokens vary first. Usage
/// error for sizes that are none, beyond their limits, or too many.
std::vector<Arguments> at_every_size(const Arguments& arguments);

}  // namespace ringlab::cli
