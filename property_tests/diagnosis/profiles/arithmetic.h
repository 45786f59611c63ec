// Which known arithmetic a subject has that breaks its own promises: one that it could declare.
#pragma once

#include <cstdint>
#include <string>

#include "property_tests/verify.h"

namespace ringlab::verify {

/// "it passes if weights are rounded to the dtype of q before they meet v: declare …", where every
/// case that was broken holds under that declaration, and new cases of the broken laws do, too. The
/// narrowest such declaration; empty where there is none, or where a failure is not one of numbers.
/// Some hundred runs of the subject; ends after a few seconds.
std::string passes_if(const Subject& subject, const SubjectVerdict& verdict, std::uint64_t seed);

}  // namespace ringlab::verify
