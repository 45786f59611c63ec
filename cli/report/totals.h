// Traffic and peak memory of a run, over all its ranks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/core/run.h"

namespace ringlab::report {

struct RunTotals {
  std::int64_t sent_bytes = 0;     ///< over all ranks
  std::int64_t sent_messages = 0;  ///< over all ranks
  std::int64_t peak_bytes = 0;     ///< of the rank that holds most
  std::int64_t peak_kv_bytes = 0;  ///< of the rank that holds most K/V
};

inline RunTotals totals_of(const RunResult& run) {
  RunTotals totals;
  for (const RankStats& rank : run.ranks) {
    totals.sent_bytes += rank.sent_bytes;
    totals.sent_messages += rank.sent_messages;
    totals.peak_bytes = std::max(totals.peak_bytes, rank.peak_bytes);
    totals.peak_kv_bytes = std::max(totals.peak_kv_bytes, rank.peak_kv_bytes);
  }
  return totals;
}

/// (query, key) pairs per batch and query head that a rank computed.
inline std::int64_t pairs_of(const RankStats& rank) {
  std::int64_t pairs = 0;
  for (const Visit& visit : rank.visits) pairs += visit.pairs;
  return pairs;
}

}  // namespace ringlab::report
