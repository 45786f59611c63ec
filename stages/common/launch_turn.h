// One launch at a time: ranks of a stage that share a device and wait for every kernel.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace ringlab::stages {

/// A rank's turn on the device. No other rank calls the driver meanwhile: where a kernel never ends
/// most calls would wait for it, and no deadline could end them.
class LaunchTurn {
 public:
  /// Waits until it is this rank's turn. `where`: for error messages, "rank 2, stage ring".
  /// DeviceStuck while the kernel of an earlier turn, which missed its deadline, has not ended.
  explicit LaunchTurn(std::string where);

  /// Waits until `has_ended`, which throws the kernel's errors. DeviceStuck when it has not within
  /// `timeout_s`; the memory that the kernel `uses` is then held until it has.
  void wait(double timeout_s, std::function<bool()> has_ended, std::shared_ptr<void> uses);

 private:
  std::string where_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace ringlab::stages
