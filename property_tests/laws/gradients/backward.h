// The parts of backward_laws().
#pragma once

#include <vector>

#include "property_tests/law.h"

namespace ringlab::verify {

std::vector<Law> gradient_identity_laws();      ///< P40-P44, P50: sums that must come out
std::vector<Law> gradient_bit_laws();           ///< P46-P49, P57: bit for bit
std::vector<Law> gradient_memory_laws();        ///< P38: where the inputs lie
std::vector<Law> gradient_probe_laws();         ///< P45, P52, P53: answers known in closed form
std::vector<Law> gradient_symmetry_laws();      ///< P51, P54-P56
std::vector<Law> gradient_distribution_laws();  ///< P58, P60, P65, P70 for gradients

}  // namespace ringlab::verify
