// The part of cudnn_engine.h that needs CUDA: cudnn_run.cpp, or where there is none
// cudnn_run_absent.cpp.
#pragma once

#include <string>

#include "reference/core/problem.h"

namespace ringlab::ring {

/// As cudnn_available().
bool is_cudnn_compiled_in();

/// As require_cudnn().
void require_cudnn_and_devices();

/// "cuDNN 9.19.0 (/usr/lib/libcudnn.so.9)". Environment error where there is none.
std::string cudnn_text();

/// Environment error unless cuDNN's attention takes the problem on this device. Channels are
/// multiples of 8.
void check_cudnn_on(int device, const Problem& problem);

}  // namespace ringlab::ring
