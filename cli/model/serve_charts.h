// Pictures of the answer of `ringlab plan --phase prefill` or `decode`.
#pragma once

#include "cli/model/serve_question.h"

namespace ringlab::cli {

/// "charts": effects of longer contexts, other numbers of new tokens or sequences, more devices and
/// other links; "events" and "caption": the lanes of a prefill's ring, where it has one. Weighs the
/// question anew a dozen times.
Json drawn_serving(const ServeQuestion& question, const model::ServeChoice& best);

}  // namespace ringlab::cli
