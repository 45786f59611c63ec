// The ring engine (optimized/ring) as a subject.
#pragma once

#include "property_tests/subject.h"

namespace ringlab::verify {

/// "optimized": honours schedules and slots, and gives gradients.
Subject engine_subject();

}  // namespace ringlab::verify
