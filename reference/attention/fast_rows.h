// The keys that the chosen rows see, as runs: found by asking the oracle's predicate for their
// ends.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/attention/visible.h"
#include "reference/core/mask.h"

namespace ringlab {

/// Every term of a mask but a bit matrix lets a query see one run of keys. That run holds the key
/// at which the query stands, or, for a query that stands before all keys, key 0: so its two ends
/// are found by bisection from there. With bit matrices all pairs are asked.
class RowVisibility {
 public:
  /// `mask` must live as long as this.
  RowVisibility(const Mask& mask, const std::vector<std::int64_t>& rows, std::int64_t q_tokens,
                std::int64_t kv_tokens);

  std::int64_t rows() const { return static_cast<std::int64_t>(runs_.size()); }
  /// The run from the first key that row number `slot` sees to the last; empty when it sees none.
  KeyInterval run(std::int64_t slot) const { return runs_[static_cast<std::size_t>(slot)]; }
  /// True when a row may not see some key inside its run.
  bool has_holes() const { return has_holes_; }
  bool sees(std::int64_t slot, std::int64_t key) const {
    return visible_(rows_[static_cast<std::size_t>(slot)], key);
  }
  /// True when any of the rows sees it.
  bool seen_by_any(std::int64_t key) const { return seen_[static_cast<std::size_t>(key)] != 0; }

 private:
  void find_runs(std::int64_t q_tokens);
  void scan_all_pairs();
  void note_seen();

  std::vector<std::int64_t> rows_;
  std::int64_t kv_tokens_;
  Visibility visible_;
  bool has_holes_;
  std::vector<KeyInterval> runs_;
  std::vector<char> seen_;
};

}  // namespace ringlab
