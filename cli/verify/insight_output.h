// What `ringlab verify` says of a subject besides its verdict: the name of the mistake, warnings.
#pragma once

#include <string>

#include "cli/line/output.h"
#include "property_tests/diagnosis/insight.h"

namespace ringlab::cli {

/// Lines for the terminal, empty when there is nothing to say.
std::string insight_text(const std::string& subject, const verify::Insight& insight);
Json insight_json(const verify::Insight& insight);

}  // namespace ringlab::cli
