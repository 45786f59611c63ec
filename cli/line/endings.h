// Ends before the end: Ctrl-C as a wish, and a device that does not end what it was given.
#pragma once

#include "reference/core/machine_error.h"

namespace ringlab::cli {

/// While one of these lives, the first SIGINT or SIGTERM only sets a flag; the second ends the
/// program as usual. One at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// From any thread.
  static bool is_wanted();
  /// True when it was SIGTERM, also after the end of this object: nobody's wish for a verdict.
  static bool is_termination();
};

/// Says it on standard error and ends the program with the error's exit code at once, from whatever
/// thread: destructors would wait for the device.
[[noreturn]] void leave_stuck(const DeviceStuck& error);

}  // namespace ringlab::cli
