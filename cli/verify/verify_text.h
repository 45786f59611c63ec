// The results of `ringlab verify` as text and as JSON.
#pragma once

#include "cli/line/output.h"
#include "cli/report/page.h"

namespace ringlab::cli {

void print_verification(const report::VerifyRun& run, Output& output);
Json subjects_json(const report::VerifyRun& run);

}  // namespace ringlab::cli
