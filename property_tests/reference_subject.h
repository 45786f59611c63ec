// The reference as a subject: others are compared with it, and it is under the laws itself.
#pragma once

#include "property_tests/subject.h"

namespace ringlab::verify {

/// "reference": exact_forward() and exact_backward(), rounded once to the problem's dtype.
Subject reference_subject();

}  // namespace ringlab::verify
