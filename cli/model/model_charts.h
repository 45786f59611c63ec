// Pictures of the answer of `ringlab plan --model`.
#pragma once

#include "cli/model/model_question.h"

namespace ringlab::cli {

/// "charts": effects of longer sequences, more devices, other links; "events" and "caption": the
/// lanes of a ring. Weighs the question anew a dozen times.
Json drawn_step(const ModelQuestion& question, const model::StepChoice& best);

}  // namespace ringlab::cli
