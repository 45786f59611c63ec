// Mistakes where queries travel and keys stay.
#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// Row n of a rank is masked as query n.
void begin_at_zero(Model& model) {
  const Chunks chunks(query_layout(model));
  const Mask mask = model.trial.problem.mask;
  see_pairs(model, [&](auto i, auto j) {
    return mask.allows(static_cast<std::int64_t>(chunks.row_of(i)), j);
  });
}

}  // namespace

std::vector<Hypothesis> query_mistakes() {
  return {by_model(
      {"mask.queries_from_zero", "queries on a visit are taken for the first tokens of all"},
      begin_at_zero)};
}

}  // namespace ringlab::verify
