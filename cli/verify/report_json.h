// Results as JSON. docs/formats.md describes the fields.
#pragma once

#include "cli/line/output.h"
#include "property_tests/coverage.h"
#include "property_tests/verify.h"
#include "reference/core/report.h"
#include "reference/core/run.h"

namespace ringlab::cli {

Json report_json(const Report& report);
Json rank_json(const RankStats& rank);
Json law_json(const verify::LawVerdict& law);
Json coverage_json(const verify::Coverage& coverage);

}  // namespace ringlab::cli
