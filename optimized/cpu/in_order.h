// An order for threads that add to the same numbers: sums of floats depend on the order, and
// results must have the same bits for any number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace ringlab::cpu {

/// Several lines of parts. All parts of a line go through the same steps, one after the other; a
/// part takes part in some of the steps, each only after the earlier parts of its line that take
/// part in it. A part must begin no earlier than the parts before it.
class InOrder {
 public:
  /// takes_part[place][step], alike for all lines.
  InOrder(std::int64_t lines, std::vector<std::vector<bool>> takes_part)
      : takes_part_(std::move(takes_part)),
        done_(static_cast<std::size_t>(lines) * takes_part_.size()) {}

  bool takes_part(std::int64_t place, std::int64_t step) const {
    return takes_part_[static_cast<std::size_t>(place)][static_cast<std::size_t>(step)];
  }
  /// Returns when the parts before have finished `step`.
  void await(std::int64_t line, std::int64_t place, std::int64_t step) {
    do {
      if (place == 0) return;
      --place;
    } while (!takes_part(place, step));  // a part that does has waited for those before it
    std::atomic<std::int64_t>& before = at(line, place);
    for (std::int64_t done = before.load(); done <= step; done = before.load()) before.wait(done);
  }
  /// Notes that the part has finished `step`.
  void pass(std::int64_t line, std::int64_t place, std::int64_t step) {
    set(at(line, place), step + 1);
  }
  /// Lets nobody wait for this part any more: it will not finish its steps.
  void abandon(std::int64_t line, std::int64_t place) {
    set(at(line, place), std::numeric_limits<std::int64_t>::max());
  }

 private:
  std::atomic<std::int64_t>& at(std::int64_t line, std::int64_t place) {
    return done_[static_cast<std::size_t>(line) * takes_part_.size() +
                 static_cast<std::size_t>(place)];
  }
  static void set(std::atomic<std::int64_t>& done, std::int64_t steps) {
    done = steps;
    done.notify_all();
  }

  const std::vector<std::vector<bool>> takes_part_;
  std::vector<std::atomic<std::int64_t>> done_;  ///< steps that a part is through with
};

}  // namespace ringlab::cpu
