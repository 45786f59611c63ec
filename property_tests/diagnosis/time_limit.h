// A time limit of searches that depends little on what else the machine does.
#pragma once

#include <chrono>

namespace ringlab::verify {

/// The end of a search that calls a subject again and again. Findings do not depend on what else the
/// machine does: subjects whose cases take milliseconds never come to it, not on a busy machine
/// either. It is for those that take far longer.
class TimeLimit {
 public:
  explicit TimeLimit(std::chrono::seconds limit) : end_(Clock::now() + limit) {}

  bool is_over() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point end_;
};

}  // namespace ringlab::verify
