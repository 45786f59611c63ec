// The deadline of a rank's wait while nothing moves.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace ringlab::in_process {

/// The patience of one wait. The rank at the end of the chain of waits is looked at in the middle
/// of the deadline and at its end: if it has used a processor meanwhile it is at work, unless it
/// has done nothing else for a whole deadline. Where there are more ranks than processors, steps
/// take long, and nobody is to blame for that.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  struct Look {
    int awaited = -1;             ///< the rank
    std::optional<Seconds> used;  ///< processor time of its thread; nothing where that is not known
  };

  explicit Patience(Clock::duration deadline) : deadline_(deadline), begin_(Clock::now()) {}

  /// When to look again, where somebody last sent or received something then.
  Clock::time_point next_look(Clock::time_point last_progress) const;
  /// True when it is over; to be asked when it is time to look.
  bool is_over(Clock::time_point last_progress, const std::function<Look()>& look);

 private:
  bool is_at_work(const Look& now);

  const Clock::duration deadline_;
  const Clock::time_point begin_;
  Clock::time_point at_work_ = {};
  std::optional<Look> seen_;
  Seconds worked_{0};
};

}  // namespace ringlab::in_process
