// The scores of one query row without any rounding, keys with equal scores put together.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/precise/dyadic.h"
#include "reference/precise/seen.h"

namespace ringlab::precise {

/// All keys of one score, and the sink if it has that score: they share one exponential.
struct ScoreGroup {
  Dyadic score;
  std::int64_t terms = 0;               ///< of the row sum: keys seen, and the sink
  std::vector<std::int64_t> kept_keys;  ///< those that dropout does not drop
};

struct ExactRow {
  RowPlace place;
  std::vector<ScoreGroup> groups;  ///< of distinct scores, descending; empty: sees no key
};

/// Scores with soft-capping are not exact numbers: usage error, whatever the row sees. Input error
/// when a visible q, k or v is not finite.
ExactRow exact_row(const AttentionInput& input, const RowPlace& place);

/// Σ v of the kept keys of one group, in one channel.
Dyadic kept_sum(const AttentionInput& input, const RowPlace& place, const ScoreGroup& group,
                std::int64_t channel);

/// Usage error that says why, when a problem has soft-capping.
void refuse_softcap(const Problem& problem);

}  // namespace ringlab::precise
