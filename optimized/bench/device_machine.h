// The file of a machine with the measured speeds of a device.
#pragma once

#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu_machine.h"

namespace ringlab::bench {

/// The text of a file as `simulate --machine` takes it. A device that a known machine is named
/// after (NVIDIA H100 80GB HBM3: h100) has that machine's links and other unmeasured figures; any
/// other device is alone in its node, and reaches the next one by way of the host. Environment
/// error where no case has speeds.
std::string device_machine(const std::string& name, const GpuFacts& facts,
                           const std::vector<PassSpeeds>& speeds, const DeviceFigures& figures);

}  // namespace ringlab::bench
