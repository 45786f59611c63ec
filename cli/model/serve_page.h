// The answer of `ringlab plan --phase prefill` or `decode` as a page of pictures.
#pragma once

#include <string>
#include <vector>

#include "cli/model/serve_question.h"

namespace ringlab::cli {

/// One HTML file that needs nothing from outside: memory and time of the choice by parts, effects
/// of longer contexts, other numbers of new tokens or sequences, more devices and other links, the
/// lanes of a prefill's ring, all splits. `choices` are those of weigh_serving(), one at least.
/// Weighs the question anew a dozen times.
std::string serve_page(const ServeQuestion& question,
                       const std::vector<model::ServeChoice>& choices);

}  // namespace ringlab::cli
