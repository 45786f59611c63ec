// The progress of some work, while it is being done.
#pragma once

#include <cstdint>
#include <functional>

namespace ringlab::cpu {

/// Called with the amount of work that was finished, in a unit of its owner's choice, from any
/// thread, by several at a time. An exception from it ends the work.
using WorkListener = std::function<void(std::int64_t amount)>;

/// Tells a listener of every finished part.
struct WorkDone {
  const WorkListener* listener = nullptr;  ///< null, or empty: nobody listens
  std::int64_t amount = 0;                 ///< of all parts together

  /// Part number `part` of `parts` is done. The parts count as equal, and add up to `amount`.
  void note(std::int64_t part, std::int64_t parts) const {
    if (listener && *listener) (*listener)(amount / parts + (part < amount % parts ? 1 : 0));
  }
};

}  // namespace ringlab::cpu
