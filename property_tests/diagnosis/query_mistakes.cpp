// Mistakes where queries travel and keys stay.
#include <algorithm>
#include <cmath>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// Weights of a chunk are those next to its own maximum.
void add_without_rescale(Model& model) {
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const auto seen = [&](std::int64_t j) { return model.in_sum(b, h, i, j) != 0; };
    const auto chunks = key_pieces(model, i, KeyOrder::by_owner, Piece::chunk);
    std::vector<double> tops;
    for (const std::vector<std::int64_t>& chunk : chunks) {
      double& top = tops.emplace_back(kNoScore);
      for (const std::int64_t j : chunk) {
        if (seen(j)) top = std::max(top, model.score(b, h, i, j));
      }
    }
    const double highest = tops.empty() ? kNoScore : *std::ranges::max_element(tops);
    for (std::size_t at = 0; at < chunks.size(); ++at) {
      for (const std::int64_t j : chunks[at]) {
        if (!seen(j)) continue;
        model.in_acc(b, h, i, j) *= std::exp(highest - tops[at]);
        model.in_sum(b, h, i, j) *= std::exp(highest - tops[at]);
      }
    }
  });
}

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
  return {by_model({"merge.parts_not_rescaled",
                    "parts of an answer are added as if all had the same maximum"},
                   add_without_rescale),
          by_model({"mask.queries_from_zero",
                    "queries on a visit are taken for the first tokens of all"},
                   begin_at_zero)};
}

}  // namespace ringlab::verify
