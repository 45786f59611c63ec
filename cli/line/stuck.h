// What is left to do where a device does not end what it was given.
#pragma once

#include "reference/core/machine_error.h"

namespace ringlab::cli {

/// Says it on standard error and ends the program with the error's exit code at once, from whatever
/// thread: destructors would wait for the device.
[[noreturn]] void leave_stuck(const DeviceStuck& error);

}  // namespace ringlab::cli
