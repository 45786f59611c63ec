// The keys that a query sees, decided one pair at a time from the definitions in core/mask.h.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/mask.h"

namespace ringlab {

/// True when, under this term, a query may see keys with hidden ones between them.
bool may_have_holes(const MaskTerm& term);

/// The oracle's own reading of a mask. Shares nothing with the interval algebra of Mask but the
/// terms themselves.
class Visibility {
 public:
  Visibility(const Mask& mask, std::int64_t q_tokens, std::int64_t kv_tokens);

  /// True when key j takes part in the answer of query i.
  bool operator()(std::int64_t query, std::int64_t key) const;

 private:
  const Mask* mask_;
  std::int64_t offset_;  ///< position of query 0 among the keys: aligned at the bottom right
  /// For each documents term, the document that each key position lies in.
  std::vector<std::vector<std::int64_t>> document_of_;
};

}  // namespace ringlab
