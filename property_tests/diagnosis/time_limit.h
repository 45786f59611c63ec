// A time limit of searches that depends little on what else the machine does.
#pragma once

#include <chrono>
#include <ctime>

namespace ringlab::verify {

/// A limit of a search that calls a subject again and again. It is over after `limit` for a subject
/// that mostly waits, at every case for its deadline. A subject at work has `limit` of processor
/// time, at most four times as long, for it may share its processors: what is found shall not
/// depend on what else the machine does.
class TimeLimit {
 public:
  explicit TimeLimit(std::chrono::seconds limit) : limit_(limit) {}

  bool is_over() const {
    const Seconds passed = Clock::now() - begin_;
    if (passed <= limit_) return false;
    const Seconds worked{static_cast<double>(std::clock() - worked_before_) / CLOCKS_PER_SEC};
    const bool waits = worked < passed / 4;
    return waits || worked > limit_ || passed > 4 * limit_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  Seconds limit_;
  Clock::time_point begin_ = Clock::now();
  std::clock_t worked_before_ = std::clock();
};

}  // namespace ringlab::verify
