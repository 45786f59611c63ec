// The answer of `ringlab plan --model` as a page of pictures.
#pragma once

#include <string>
#include <vector>

#include "cli/model/model_question.h"

namespace ringlab::cli {

/// One HTML file that needs nothing from outside: memory and time of the choice by parts, effects
/// of longer sequences, more devices, other links, the lanes of a ring, all splits. `choices` are
/// those of weigh_training(), one at least. Weighs the question anew a dozen times.
std::string model_page(const ModelQuestion& question,
                       const std::vector<model::StepChoice>& choices);

}  // namespace ringlab::cli
