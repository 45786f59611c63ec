// A deadline for what a device does: a kernel or a copy that never ends is no reason to wait for ever.
#pragma once

#include <functional>
#include <memory>

#include "cli/bench/gpu/gpu.h"
#include "reference/core/machine_error.h"

namespace ringlab::bench {

struct GpuDeadline {
  double seconds =
      0;  ///< for each piece of work: to make it, to do it once, to look at its results
  /// Gets what was waited for, while it is still waited for, in a thread of its own. It ends the
  /// program: nothing that the device uses can be freed.
  std::function<void(const DeviceStuck&)> passed;
};

/// What `open` gives, all of whose work has this deadline, to be opened included.
std::unique_ptr<Gpu> with_deadline(const std::function<std::unique_ptr<Gpu>()>& open,
                                   const GpuDeadline& deadline);

}  // namespace ringlab::bench
