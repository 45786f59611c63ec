// Sentences about answers that are NaN.
#pragma once

#include <string>

#include "property_tests/diagnosis/evidence.h"

namespace ringlab::verify {

/// A sentence on the rows whose o or lse is NaN although there is an answer: a property that they
/// share, and the arithmetic that gives NaN there; empty where there is no such row.
std::string nan_words(const Evidence& evidence);

}  // namespace ringlab::verify
