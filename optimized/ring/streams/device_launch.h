// Launches of runs on devices: put on streams once, or captured and launched as often as wanted.
#pragma once

#include <chrono>
#include <cstdint>

#include "optimized/ring/streams/cuda_streams.h"
#include "optimized/ring/streams/issued_streams.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// Usage error for several launches of a run on streams: only a graph can be launched again.
inline void check_launches(IssueAs issue_as, int launches) {
  constexpr int kMost = 1 << 20;
  check_range("launches", launches, 1, issue_as == IssueAs::graph ? kMost : 1);
}

/// Usage error for a trace of a graph, whose operations nobody can time.
inline void check_trace_wish(const RunOptions& options, IssueAs issue_as) {
  if (!options.trace || issue_as == IssueAs::streams) return;
  throw_usage_error({.where = "trace",
                     .expected = "a run on streams",
                     .actual = "one that is captured as a graph",
                     .hint = "Leave out one of the two"});
}

/// Duration of a run by the host's clock, and by that of its first device.
struct RunSeconds {
  double host = 0, device = 0;
};

/// Launches a run and returns the duration of the last launch; that of the first includes the
/// capture. `issue()` puts the run on the streams, `wait()` waits for it. The first stream stands
/// still for `hold_ns` before each launch.
template <class Issue, class Wait>
RunSeconds seconds_of_last(IssueAs issue_as, int launches, IssuedStreams& streams, Issue issue,
                           Wait wait, std::int64_t hold_ns = 0) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  streams.start_clock(hold_ns);
  if (issue_as == IssueAs::graph) {
    streams.launch_as_graph(issue);
  } else {
    issue();
  }
  streams.stop_clock();
  wait();
  for (int launch = 1; launch < launches; ++launch) {
    begin = Clock::now();
    streams.start_clock(hold_ns);
    streams.launch_graph();
    streams.stop_clock();
    wait();
  }
  const std::chrono::duration<double> passed = Clock::now() - begin;
  return {.host = passed.count(), .device = streams.clocked_seconds()};
}

}  // namespace ringlab::ring
