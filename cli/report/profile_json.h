// The arithmetic that a kernel promises, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "reference/core/numerics.h"

namespace ringlab::report {

/// Every field by its own name; unit roundoffs and errors are numbers, 0: exact.
nlohmann::ordered_json profile_json(const NumericsProfile& profile);

}  // namespace ringlab::report
