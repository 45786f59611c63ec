#include "optimized/transport/patience.h"

#include <algorithm>

namespace ringlab::in_process {
namespace {

// A thread that sleeps uses less, one of a thousand on two processors more.
constexpr Patience::Seconds kLeastWork{1e-3};
constexpr double kLeastShare = 5e-4;

}  // namespace

Patience::Clock::time_point Patience::next_look(Clock::time_point last_progress) const {
  return std::max({begin_, last_progress, at_work_}) + deadline_ / (seen_ ? 1 : 2);
}

bool Patience::is_over(Clock::time_point last_progress, const std::function<Look()>& look) {
  if (Clock::now() < next_look(last_progress)) {  // something has moved
    seen_.reset();
    return false;
  }
  const Look now = look();
  if (seen_ && !is_at_work(now)) return true;
  if (seen_) at_work_ = Clock::now();
  seen_ = now;
  return false;
}

bool Patience::is_at_work(const Look& now) {
  if (now.awaited != seen_->awaited) return true;
  if (!now.used || !seen_->used) return false;
  const Seconds deadline = deadline_, used = *now.used - *seen_->used;
  worked_ += used;
  return used >= std::max(kLeastWork, deadline * kLeastShare) && worked_ < deadline;
}

}  // namespace ringlab::in_process
