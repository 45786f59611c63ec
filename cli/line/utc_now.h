// The date, as results of the program have it.
#pragma once

#include <string>

namespace ringlab::cli {

/// "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace ringlab::cli
