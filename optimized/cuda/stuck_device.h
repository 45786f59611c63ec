// Work on devices that may not come to an end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ringlab::cuda {

/// Asks `has_ended` until it says so; false when it has not within `timeout_s` (infinity is
/// allowed). At first it asks all the time, later every millisecond, so that asking adds little to
/// what is measured.
bool ends_within(double timeout_s, const std::function<bool()>& has_ended);

/// DeviceStuck: `where` was to end within `timeout_s`, and `unended` did not. The first twelve of
/// them are told.
[[noreturn]] void throw_stuck(const std::string& where, double timeout_s,
                              const std::vector<std::string>& unended);

/// Keeps what a stuck device uses: to free it would wait for what does not end.
void keep_for_ever(std::shared_ptr<void> used);

}  // namespace ringlab::cuda
