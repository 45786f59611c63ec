// From the command line of `ringlab verify` to what it should do.
#pragma once

#include <vector>

#include "cli/inputs/problem_options.h"
#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "cli/verify/verify_work.h"

namespace ringlab::cli {

/// Subjects, laws, rounds and rows. Usage errors for what is unknown or given twice.
VerifyPlan take_plan(Arguments& arguments, bool quick);

/// Subjects that do not know all modifiers asked for skip the input; usage error unless one of them
/// at least does.
void check_some_can(const std::vector<verify::Subject>& subjects, const Arguments& arguments);

/// Those that have no kernels for devices are left out, or refused where they were asked for.
void keep_those_on_devices(std::vector<verify::Subject>& subjects, const Arguments& arguments);

/// What is echoed: flat, one value per name.
Json configuration_of(const VerifyPlan& plan, const LoadedInput& loaded, const RunOptions& options);

}  // namespace ringlab::cli
