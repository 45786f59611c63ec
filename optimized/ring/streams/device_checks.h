// Checks for what runs on devices cannot do, without asking a device: usage errors.
#pragma once

#include "reference/core/run.h"

namespace ringlab::ring {

/// Throws for types of elements other than f16 and bf16.
void check_kernel_dtype(DType dtype);

/// Throws for score modifiers, bit matrices and lossy wire formats.
void check_device_abilities(const Problem& problem, const RunOptions& options);

/// Throws for runs that ringlab's kernels on devices do not take: for both reasons above, and for
/// more than 256 channels. Channels that are no multiple of 8 are padded.
void check_device_run(const Problem& problem, const RunOptions& options);

}  // namespace ringlab::ring
