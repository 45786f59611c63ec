// Mutants that need no edit of a stage's text: a correct stage whose inputs, outputs or network are
// tampered with, as real bugs around a kernel do.
#pragma once

#include <vector>

#include "property_tests/mutants/mutants.h"

namespace ringlab::mutants {

std::vector<Mutant> input_mutants();     ///< what the stage is given
std::vector<Mutant> output_mutants();    ///< what becomes of its results
std::vector<Mutant> wire_mutants();      ///< what happens to its messages
std::vector<Mutant> gradient_mutants();  ///< what becomes of its gradients
std::vector<Mutant> schedule_mutants();  ///< what the engine does when
std::vector<Mutant> modifier_mutants();  ///< what the engine makes of score modifiers
std::vector<Mutant> engine_mutants();    ///< what happens to the engine's messages

}  // namespace ringlab::mutants
