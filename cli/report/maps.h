// Pictures of masks: who computes which block of pairs when, and the pairs of one small case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/law.h"
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
/// The work of each (rank, hop) that a subject recorded.
RingWork measured_work(const RunResult& run);

/// Who holds the tokens of a case, and when a ring brings a key to a query.
class HopMap {
 public:
  explicit HopMap(const verify::Case& c);
  int query_rank(std::int64_t query) const { return q_owner_[static_cast<std::size_t>(query)]; }
  int key_rank(std::int64_t key) const { return k_owner_[static_cast<std::size_t>(key)]; }
  /// 0 for the own chunk; -1 where the mask hides the pair.
  int hop(std::int64_t query, std::int64_t key) const;
  int ranks() const { return ranks_; }

 private:
  Mask mask_;
  std::vector<int> q_owner_, k_owner_;
  int ranks_;
  RingDirection direction_;
};

/// The (query, key) pairs of a small case, tokens marked with the rank that holds them and visible
/// pairs with the hop of a ring that computes them; `marked` is the element that was wrong.
std::string case_map(const verify::Case& shown,
                     const std::optional<verify::Element>& marked = std::nullopt);
/// case_map() as a part of a card, with a caption; empty where the map is.
std::string case_picture(const verify::Case& shown, const std::optional<verify::Element>& marked);

}  // namespace ringlab::report
