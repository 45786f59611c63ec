// Limits of searches, counted in work: a search comes as far on a busy machine as on an idle one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "property_tests/case.h"
#include "property_tests/subject.h"

namespace ringlab::verify {

/// The end of a search that calls a subject again and again: so many products of queries, keys and
/// values. A time limit is the last resort, for subjects that take seconds for a small case.
class WorkLimit {
 public:
  explicit WorkLimit(std::int64_t most) : most_(most) {}

  /// Adds the work of a case; false, and no more work, when the limit was reached before it.
  bool admits(const Case& c) { return admits(c.shape); }
  bool admits(const Shape& shape) {
    if (is_over()) return false;
    *done_ += products(shape);
    return true;
  }
  bool is_over() const { return *done_ >= most_ || Clock::now() >= end_; }

  /// A subject whose calls are work of this search.
  Subject counted(Subject subject) const {
    subject.run = [done = done_, run = std::move(subject.run)](const AttentionInput& input,
                                                               const RunOptions& options) {
      *done += products(input.problem.shape);
      return run(input, options);
    };
    return subject;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongest{120};

  static std::int64_t products(const Shape& s) {
    return s.batch * s.q_heads * s.q_tokens * s.kv_tokens * (s.head_dim + s.v_dim);
  }

  std::int64_t most_;
  std::shared_ptr<std::atomic<std::int64_t>> done_ = std::make_shared<std::atomic<std::int64_t>>(0);
  Clock::time_point end_ = Clock::now() + kLongest;
};

/// The work of a search over cases like a failing one.
inline constexpr std::int64_t kWorkOfSearch = std::int64_t{1} << 25;

}  // namespace ringlab::verify
