// The summary of a trace: how much of the communication was hidden, who was slow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/trace/trace_json.h"

namespace ringlab::report {

/// Nearest-rank percentiles.
struct Spread {
  std::int64_t count = 0;
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;
};
Spread spread_of(std::vector<std::int64_t> durations_ns);

/// One rank in a trace. All times are lengths of unions of intervals: what overlaps counts once.
struct RankSummary {
  int rank = 0;
  std::int64_t span_ns = 0;       ///< of the whole run: the same for all ranks
  std::int64_t compute_ns = 0;    ///< attention, and sums of gradients
  std::int64_t in_flight_ns = 0;  ///< some send or receive was under way
  std::int64_t covered_ns = 0;    ///< part of in_flight_ns while the rank computed
  std::int64_t wait_ns = 0;       ///< stood still for a message: communication that shows
  std::int64_t bytes_received = 0;
  Spread block;  ///< of single blocks of attention

  /// covered / in flight; nothing where nothing was in flight.
  std::optional<double> overlap() const;
  /// 1 - compute / span; 0 for an empty span.
  double idle() const;
};

/// Receives of one rank from another, from posting to completion.
struct LinkSummary {
  int from = 0;
  int to = 0;
  Spread receive;
  std::int64_t bytes = 0;
};

struct TraceSummary {
  std::vector<RankSummary> ranks;  ///< of all numbers up to the largest that has an event
  std::vector<LinkSummary> links;  ///< by from, then to
  std::int64_t span_ns = 0;        ///< from the first beginning to the last end
  /// The rank whose blocks take longest at the median, where that is a straggler (slowness.h) next
  /// to the other ranks that computed.
  std::optional<int> straggler;
  double straggler_ratio = 0;  ///< of the slowest rank, straggler or not; 0 without others
  /// Index into links of the one with the largest median.
  std::optional<std::size_t> slowest_link;

  std::optional<double> overlap() const;  ///< of all ranks together
  double idle() const;
};

TraceSummary summarize(const Trace& trace);

/// "83 %", or "none in flight" where there was nothing to hide.
std::string overlap_text(const std::optional<double>& overlap);
/// "rank 3, 1.70 times the median of the others", or "none".
std::string straggler_text(const TraceSummary& summary);
/// "rank 0 to rank 1, p50 2 ms, p99 3 ms", or "none".
std::string slowest_link_text(const TraceSummary& summary);

}  // namespace ringlab::report
