// The reference as a subject: what others are compared with, under the laws itself.
#pragma once

#include "property_tests/subject.h"

namespace ringlab::verify {

/// "reference": exact_forward() and exact_backward(), rounded once to the problem's dtype.
Subject reference_subject();

}  // namespace ringlab::verify
