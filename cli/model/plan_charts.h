// Pictures of the answer of `ringlab plan`.
#pragma once

#include "cli/line/output.h"
#include "reference/model/planner.h"

namespace ringlab::cli {

/// "charts": the choice and the best way with slower and faster links; "events" and "caption": the
/// lanes of the choice. `job` has the options of the choice. Weighs all ways of the choice's ranks
/// anew five times. Errors as weigh_ways().
Json drawn_plan(const model::Job& job, const model::Machine& machine,
                const model::PlanLimits& limits, const model::Choice& choice);

}  // namespace ringlab::cli
