// Sentences about answers that are NaN.
#pragma once

#include <string>
#include <vector>

#include "property_tests/diagnosis/evidence.h"

namespace ringlab::verify {

/// A sentence on the rows whose o or lse is NaN although there is an answer: a property that they
/// share, and the arithmetic that gives NaN there; empty where there is no such row.
std::string nan_words(const Evidence& evidence);

/// The mistake of a subject whose wrong numbers are, all of them, outputs that it never writes.
extern const Suspect kNeverWritten;
bool are_never_written(const std::vector<Evidence>& all);

}  // namespace ringlab::verify
