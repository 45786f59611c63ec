// Rings with cuDNN's attention, or what stands for it, against the exact reference.
#pragma once

#include <string>

#include "tests/optimized/cuda/devices_trial.h"

namespace ringlab::cudnn {

/// Any sizes, masks, layouts, schedules and numbers of ranks. `widest` bounds head_dim and v_dim.
cuda::DevicesCase random_case(unsigned seed, std::int64_t widest);

/// Empty, or what is wrong by the bounds of cudnn_engine_profile(). Gradients are judged where there
/// are any; bounds within which zeros lie say nothing, and are wrong, too.
std::string judge(const cuda::DevicesTrial& trial, const RunResult& got);

}  // namespace ringlab::cudnn
