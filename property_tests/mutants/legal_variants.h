// Correct subjects that differ from the stages in what they are free to choose. No law may blame
// them: strength without false alarms is the honest figure.
#pragma once

#include <vector>

#include "property_tests/subject.h"

namespace ringlab::mutants {

std::vector<verify::Subject> legal_variants();

}  // namespace ringlab::mutants
