// Waits for work on devices that may never end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ringlab::cuda {

/// Calls `has_ended` until it returns true; false when it does not within `timeout_s` (infinity is
/// allowed). It first asks all the time, later every millisecond, to add little to measured times.
bool ends_within(double timeout_s, const std::function<bool()>& has_ended);

/// Throws DeviceStuck: `where` was to end within `timeout_s`, and `unended` did not. Its text names
/// the first twelve of `unended`.
[[noreturn]] void throw_stuck(const std::string& where, double timeout_s,
                              const std::vector<std::string>& unended);

/// Never frees memory that a stuck device uses: freeing it would wait for work that does not end.
void keep_for_ever(std::shared_ptr<void> used);

}  // namespace ringlab::cuda
