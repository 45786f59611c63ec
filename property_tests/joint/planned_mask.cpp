// Masks of planned cases.
#include <algorithm>
#include <utility>

#include "property_tests/generators/masks.h"
#include "property_tests/joint/plan.h"

namespace ringlab::verify {
namespace {

/// A number from 0 to `most`: anything, or a power of two or one off.
std::int64_t length_up_to(Draws& draws, std::int64_t most) {
  if (draws.chance(40)) return draws.below(most + 1);
  const std::int64_t power = std::int64_t{1} << draws.below(17);
  return std::clamp<std::int64_t>(power + draws.between(-1, 1), 0, most);
}

void plan(CausalMask&, Draws&, const Shape&) {}
void plan(WindowMask& window, Draws& draws, const Shape& shape) {
  window.left = length_up_to(draws, shape.kv_tokens);
  window.right = draws.chance(20) ? WindowMask::kUnlimited : length_up_to(draws, shape.kv_tokens);
}
/// One to 40 documents; in three of four cases the last has at least half of the keys.
void plan(DocumentsMask& documents, Draws& draws, const Shape& shape) {
  const std::int64_t before = draws.chance(50) ? draws.between(1, 3) : draws.between(4, 39);
  std::int64_t left = draws.chance(75) ? shape.kv_tokens / 2 : shape.kv_tokens;
  for (std::int64_t i = 0; i < before && left > 0; ++i) {
    documents.lengths.push_back(length_up_to(draws, std::min(left, 1 + 2 * left / (before - i))));
    left -= documents.lengths.back();
  }
  documents.lengths.push_back(0);  // fitted() stretches it
}
/// A prefix that ends anywhere, or among the positions of the queries.
void plan(PrefixMask& prefix, Draws& draws, const Shape& shape) {
  const std::int64_t first = std::max<std::int64_t>(0, shape.kv_tokens - shape.q_tokens);
  prefix.tokens = draws.between(draws.chance(50) ? first : 0, shape.kv_tokens + 1);
}
void plan(DrawnBits& bits, Draws& draws, const Shape&) {
  bits.seed = static_cast<std::uint64_t>(draws.below(1000));
}

CaseTerm planned_term(Draws& draws, std::size_t kind, const Shape& shape) {
  CaseTerm term = blank_terms()[kind];
  std::visit([&](auto& known) { plan(known, draws, shape); }, term);
  return term;
}

}  // namespace

CaseMask planned_mask(Draws& draws, std::int8_t mask_class, const Shape& shape) {
  const auto& classes = mask_classes();
  const auto at = static_cast<std::size_t>(std::max<std::int8_t>(0, mask_class));
  if (at + 1 == classes.size()) return three_masks(draws, shape);
  std::vector<CaseTerm> terms;
  for (const std::size_t kind : classes[at]) terms.push_back(planned_term(draws, kind, shape));
  return fitted(CaseMask(std::move(terms)), shape);
}

}  // namespace ringlab::verify
