// Vector clocks over streams: the operations that have ended when an operation begins.
//
// Source: Fidge 1988, Mattern 1989; happens-before of Lamport 1978, with streams as processes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ringlab::ring {

/// Per stream, how many of its operations have ended.
class StreamClock {
 public:
  explicit StreamClock(int streams) : ended_(static_cast<std::size_t>(streams)) {}
  int of(int stream) const { return ended_[static_cast<std::size_t>(stream)]; }
  void tick(int stream) { ++ended_[static_cast<std::size_t>(stream)]; }
  void merge(const StreamClock& other) {
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      ended_[i] = std::max(ended_[i], other.ended_[i]);
    }
  }

 private:
  std::vector<int> ended_;
};

}  // namespace ringlab::ring
