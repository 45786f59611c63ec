// How a run gets to the devices: put on streams once, or captured and launched as often as wanted.
#pragma once

#include <chrono>

#include "optimized/ring/cuda_streams.h"
#include "optimized/ring/issued_streams.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// Usage error for a run on streams more than once: each is another one.
inline void check_launches(IssueAs issue_as, int launches) {
  constexpr int kMost = 1 << 20;
  check_range("launches", launches, 1, issue_as == IssueAs::graph ? kMost : 1);
}

/// Usage error for a trace of a graph, whose operations nobody can time.
inline void check_trace_wish(const RunOptions& options, IssueAs issue_as) {
  if (!options.trace || issue_as == IssueAs::streams) return;
  throw_usage_error(
      {"trace", "a run on streams", "one that is captured as a graph", "Leave out one of the two"});
}

/// `issue()` puts the run on the streams, `wait()` waits for it. Seconds of the last launch, the
/// first of which includes the capture.
template <class Issue, class Wait>
double seconds_of_last(IssueAs issue_as, int launches, IssuedStreams& streams, Issue issue,
                       Wait wait) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  if (issue_as == IssueAs::graph) {
    streams.launch_as_graph(issue);
  } else {
    issue();
  }
  wait();
  for (int launch = 1; launch < launches; ++launch) {
    begin = Clock::now();
    streams.launch_graph();
    wait();
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace ringlab::ring
