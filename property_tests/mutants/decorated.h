// Mutants that need no edit of a stage's text: a correct stage whose inputs, outputs or network are
// tampered with, as real bugs around a kernel do.
#pragma once

#include <vector>

#include "property_tests/mutants/mutants.h"

namespace ringlab::mutants {

std::vector<Mutant> input_mutants();     ///< changed inputs of a stage
std::vector<Mutant> output_mutants();    ///< changed results of a stage
std::vector<Mutant> wire_mutants();      ///< changed messages of a stage
std::vector<Mutant> gradient_mutants();  ///< changed gradients of a stage
std::vector<Mutant> schedule_mutants();  ///< changed schedules of the engine
std::vector<Mutant> modifier_mutants();  ///< changed score modifiers of the engine
std::vector<Mutant> engine_mutants();    ///< changed messages of the engine

}  // namespace ringlab::mutants
