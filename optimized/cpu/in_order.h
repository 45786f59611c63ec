// Threads that add to the same numbers, in an order that chance does not decide.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

namespace ringlab::cpu {

/// Every part of some work goes through the same steps; at each, part p comes after part p-1,
/// except that the first of every `chain` parts comes after none. Parts are begun in ascending
/// order.
class InOrder {
 public:
  InOrder(std::int64_t parts, std::int64_t chain)
      : chain_(chain), steps_(static_cast<std::size_t>(parts)) {}

  /// Returns when the part before has been through `step`.
  void await(std::int64_t part, std::int64_t step) {
    if (part % chain_ == 0) return;
    std::atomic<std::int64_t>& before = steps_[static_cast<std::size_t>(part - 1)];
    for (std::int64_t done = before.load(); done <= step; done = before.load()) before.wait(done);
  }
  /// `part` has been through its next step.
  void pass(std::int64_t part) {
    std::atomic<std::int64_t>& mine = steps_[static_cast<std::size_t>(part)];
    ++mine;
    mine.notify_all();
  }
  /// Nobody waits for this part any more: it will not be through with its steps.
  void abandon(std::int64_t part) {
    std::atomic<std::int64_t>& mine = steps_[static_cast<std::size_t>(part)];
    mine = std::numeric_limits<std::int64_t>::max();
    mine.notify_all();
  }

 private:
  const std::int64_t chain_;
  std::vector<std::atomic<std::int64_t>> steps_;  ///< that a part has been through
};

}  // namespace ringlab::cpu
