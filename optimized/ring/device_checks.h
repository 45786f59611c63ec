// What devices do not do, known without one.
#pragma once

#include "reference/core/run.h"

namespace ringlab::ring {

/// Usage error for score modifiers, bit matrices and lossy wire formats.
void check_device_abilities(const Problem& problem, const RunOptions& options);

}  // namespace ringlab::ring
