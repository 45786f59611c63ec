// Roundings that a subject declares and that cannot be seen in its results.
#pragma once

#include <string>
#include <vector>

#include "property_tests/subject.h"

namespace ringlab::verify {

/// One sentence per dtype whose declared profile is wider than it need be: "bf16: declares weights
/// rounded to 2^-8 and stays within the bounds of exact ones". For information: to declare more
/// than one does is allowed. Empty where the tightest profile that passes is the declared one.
std::vector<std::string> wider_than_needed(const Subject& subject, std::uint64_t seed);

}  // namespace ringlab::verify
