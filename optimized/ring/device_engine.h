// The ring engine on devices, as the rest of the program sees it: in every build, with or without
// CUDA.
#pragma once

#include <string>

#include "optimized/ring/native.h"
#include "reference/core/numerics.h"

namespace ringlab::ring {

/// What runs on devices cannot do is a usage error: types other than f16 and bf16, score modifiers,
/// bit matrices, lossy wire formats, more than 256 channels. Channels that are no multiple of 8 are
/// padded. Known without a device.
void check_device_run(const Problem& problem, const RunOptions& options);

/// Environment error that says what is missing when there is no device, or no CUDA in this build.
void require_devices();

/// Which kernels a run would use, and on what devices.
struct DeviceChoice {
  std::string kernels;
  std::string devices;
};
DeviceChoice describe_device_run(const Problem& problem, const RunOptions& options);

/// As run_native(), on all devices that there are (cuda_streams.h), with gradients of the same bits
/// from run to run. Half and BFloat16.
template <class Element>
NativeSummary run_native_on_devices(const Problem& problem, const RunOptions& options,
                                    const NativeEnds<Element>& ends);

/// As run_engine().
RunResult run_engine_on_devices(const AttentionInput& input, const RunOptions& options);

/// What the kernels on devices promise for this problem, whichever are chosen.
NumericsProfile device_engine_profile(const Problem& problem, const RunOptions& options);

}  // namespace ringlab::ring
