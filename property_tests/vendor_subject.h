// Kernels of vendors as subjects: cuDNN's attention in the ring engine.
#pragma once

#include "property_tests/subject.h"

namespace ringlab::verify {

/// "cudnn": runs on devices only.
Subject cudnn_subject();

}  // namespace ringlab::verify
