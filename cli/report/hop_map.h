// A small case as a map: which rank holds each token, and when a ring brings a key to a query.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/law.h"
#include "reference/core/mask.h"
#include "reference/core/run.h"

namespace ringlab::report {

/// Who holds the tokens of a case, and when a ring brings a key to a query.
class HopMap {
 public:
  explicit HopMap(const verify::Case& c);
  int query_rank(std::int64_t query) const { return q_owner_[static_cast<std::size_t>(query)]; }
  int key_rank(std::int64_t key) const { return k_owner_[static_cast<std::size_t>(key)]; }
  /// 0 for the own chunk; -1 where the mask hides the pair.
  int hop(std::int64_t query, std::int64_t key) const;
  int ranks() const { return ranks_; }
  /// "ranks", "direction", "query_ranks" and "key_ranks" by token, and "visible": for each query a
  /// text with 1 for each key that it sees, 0 for each that it does not. Null for cases of more than
  /// 96 queries or keys, which nobody reads pair by pair, and for those without pairs.
  nlohmann::ordered_json json() const;

 private:
  Mask mask_;
  std::vector<int> q_owner_, k_owner_;
  int ranks_;
  RingDirection direction_;
};

/// "tensor", "batch", "head", "token" and "channel".
nlohmann::ordered_json element_json(const verify::Element& element);

}  // namespace ringlab::report
