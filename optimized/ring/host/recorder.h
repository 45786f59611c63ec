// Events of a rank: all of them for a trace, the last few for a flight recording.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "reference/core/schedule/trace.h"

namespace ringlab::ring {

class Recorder {
 public:
  using Clock = std::chrono::steady_clock;
  /// Events that a flight recording shows.
  static constexpr std::size_t kRemembered = 64;
  enum class Keep { last, all };

  Recorder(Keep keep, Clock::time_point zero) : keep_(keep), zero_(zero) {}

  /// Nanoseconds since the run began.
  std::int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - zero_).count();
  }
  void add(const TraceEvent& event) {
    if (keep_ == Keep::last && events_.size() == kRemembered) events_.pop_front();
    events_.push_back(event);
  }
  /// The last kRemembered events, one a line.
  std::string recording() const {
    std::string text;
    const std::size_t skipped = events_.size() > kRemembered ? events_.size() - kRemembered : 0;
    for (std::size_t i = skipped; i < events_.size(); ++i) text += describe(events_[i]) + "\n";
    return text;
  }
  std::vector<TraceEvent> all() const {
    if (keep_ == Keep::last) return {};
    return {events_.begin(), events_.end()};
  }

 private:
  Keep keep_;
  Clock::time_point zero_;
  std::deque<TraceEvent> events_;
};

}  // namespace ringlab::ring
