// Pictures of masks: who computes which block of pairs when, and the pairs of one small case.
#pragma once

#include <string>
#include <vector>

#include "property_tests/case.h"
#include "reference/core/layout.h"
#include "reference/core/mask.h"
#include "reference/core/run.h"

namespace ringlab::report {

/// Visible pairs of each (rank, hop) of a ring: at hop h, rank r holds the K/V of rank r - h (or
/// r + h when chunks travel to the previous rank).
struct RingWork {
  int ranks = 0;
  std::vector<std::vector<std::int64_t>> pairs;  ///< [rank][hop]
  /// Work done over work possible if every hop takes as long as its busiest rank; 1 without work.
  double busy_fraction() const;
};
RingWork ring_work(const Mask& mask, const Layout& queries, const Layout& keys,
                   RingDirection direction);

/// Blocks of query ranks × K/V owners in the order the ranks hold their tokens; the colour is the
/// hop, the depth of colour the share of visible pairs.
std::string layout_map(const Mask& mask, const Layout& queries, const Layout& keys,
                       RingDirection direction);

/// One row per rank, one column per hop; bars are pairs, relative to the busiest.
std::string work_chart(const RingWork& work);
/// The same from what a subject recorded.
RingWork measured_work(const RunResult& run);

/// The (query, key) pairs of a small case, tokens marked with the rank that holds them.
std::string case_map(const verify::Case& shown);

}  // namespace ringlab::report
