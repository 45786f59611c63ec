// The sections of the report, each a piece of HTML.
#pragma once

#include <string>

#include "cli/report/page.h"

namespace ringlab::report {

std::string summary_section(const VerifyRun& run);
std::string layout_section(const VerifyRun& run);
std::string error_section(const VerifyRun& run);
std::string cost_section(const VerifyRun& run);
std::string laws_section(const VerifyRun& run);
/// Empty when nothing was tried.
std::string coverage_section(const VerifyRun& run);
/// The card of each subject that is wrong, with its mistake; empty when none is.
std::string wrong_answers_section(const VerifyRun& run);
/// Law by law; empty when nothing failed.
std::string failures_section(const VerifyRun& run);
/// Empty when there is nothing to say.
std::string insight_section(const VerifyRun& run);
std::string promises_section(const VerifyRun& run);

}  // namespace ringlab::report
