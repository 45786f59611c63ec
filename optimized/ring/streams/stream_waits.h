// The waits between streams that are needed: those that no other wait implies.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "optimized/ring/streams/stream_clock.h"

namespace ringlab::ring {

/// A piece of work on a stream, and the earlier works, by number, that must have ended before.
struct StreamWork {
  int stream = 0;
  std::vector<std::size_t> after = {};
};

/// For each work the works of other streams that it must wait for; works are in the order of issue.
inline std::vector<std::vector<std::size_t>> needed_waits(const std::vector<StreamWork>& works,
                                                          int streams) {
  std::vector<StreamClock> now(static_cast<std::size_t>(streams), StreamClock(streams));
  std::vector<StreamClock> end_of;
  std::vector<std::vector<std::size_t>> waits(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    StreamClock& clock = now[static_cast<std::size_t>(works[i].stream)];
    std::vector<std::size_t> after = works[i].after;
    std::ranges::sort(after, std::greater<>());  // the latest ones imply most
    for (const std::size_t other : after) {
      const int of = works[other].stream;
      if (of == works[i].stream || clock.of(of) >= end_of[other].of(of)) continue;
      clock.merge(end_of[other]);
      waits[i].push_back(other);
    }
    clock.tick(works[i].stream);
    end_of.push_back(clock);
  }
  return waits;
}

}  // namespace ringlab::ring
