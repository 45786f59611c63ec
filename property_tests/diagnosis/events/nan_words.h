// Words for answers that are no numbers.
#pragma once

#include <string>

#include "property_tests/diagnosis/evidence.h"

namespace ringlab::verify {

/// What the rows have in common whose o or lse is NaN although there is an answer, and which
/// arithmetic gives NaN there; empty where there is no such row.
std::string nan_words(const Evidence& evidence);

}  // namespace ringlab::verify
