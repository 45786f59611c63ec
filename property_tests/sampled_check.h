// Some rows of a result next to the exact reference, one group of heads at a time: a check for
// sequences that are too long to be held whole as doubles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "reference/core/numerics.h"
#include "reference/core/report.h"
#include "reference/core/run.h"

namespace ringlab::verify {

/// `count` of the query rows, ascending: the first and the last, then the first and the last row of
/// every run of tokens that a rank holds (evenly chosen among them when they are too many), then
/// the middle of the widest gap, as long as rows are wanted. All rows when `count` is not less.
std::vector<std::int64_t> sample_rows(const Layout& queries, std::int64_t count);

/// The modifiers with the slopes and sinks of these query heads alone.
Modifiers modifiers_of_heads(Modifiers modifiers, const std::vector<std::int64_t>& heads);

/// Usage error for a problem with dropout, of which some rows cannot be checked alone.
void refuse_dropout(const Problem& problem);

/// The query heads of one batch that read one K/V head, in doubles: q (1, group, q_tokens,
/// head_dim), of which only the checked rows are read, k and v (1, 1, kv_tokens, channels).
struct HeadGroup {
  TensorView<const double> q, k, v;
  std::shared_ptr<const void> owner = {};  ///< kept while the views are in use
};
using HeadGroupSource = std::function<HeadGroup(std::int64_t batch, std::int64_t kv_head)>;
/// Views of tensors that are there as a whole.
HeadGroupSource groups_of(const AttentionInput& input);

struct SampledCheck {
  const Problem& problem;
  NumericsProfile profile;
  std::vector<std::int64_t> rows;  ///< ascending
  int threads = 1;
};
/// Compares o and lse of these rows of all heads. `got` holds them and no others, in the same
/// order. The indices in the report are those of the whole tensors.
Report check_sampled(const SampledCheck& check, const HeadGroupSource& source,
                     const AttentionOutput& got);

}  // namespace ringlab::verify
