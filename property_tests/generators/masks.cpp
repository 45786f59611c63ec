#include "property_tests/generators/masks.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace ringlab::verify {
namespace {

void draw(CausalMask&, Draws&, const Shape&) {}
void draw(WindowMask& window, Draws& draws, const Shape& shape) {
  for (std::int64_t* limit : {&window.left, &window.right}) {
    *limit = draws.chance(20) ? WindowMask::kUnlimited : draws.below(shape.kv_tokens + 1);
  }
}
void draw(DocumentsMask& documents, Draws& draws, const Shape& shape) {
  for (std::int64_t left = shape.kv_tokens; left > 0;) {
    const std::int64_t length =
        draws.chance(10) ? 0 : draws.between(1, std::max(left / 2, left % 7));
    documents.lengths.push_back(std::min(left, length));
    left -= documents.lengths.back();
  }
  documents.lengths.push_back(0);
}
void draw(PrefixMask& prefix, Draws& draws, const Shape& shape) {
  prefix.tokens = draws.below(shape.kv_tokens + 2);
}
void draw(DrawnBits& bits, Draws& draws, const Shape&) {
  bits.seed = static_cast<std::uint64_t>(draws.below(1000));
}

template <class Term>
bool holds(const CaseTerm& term) {
  return std::holds_alternative<Term>(term);
}

CaseTerm random_term(Draws& draws, const Shape& shape) {
  std::vector<CaseTerm> terms = blank_terms();
  // Two draws per kind, so that the seeds of older tokens and tests draw what they always drew.
  const std::int64_t kind = draws.below(2 * std::ssize(terms)) / 2;
  CaseTerm& term = terms[static_cast<std::size_t>(kind)];
  std::visit([&](auto& known) { draw(known, draws, shape); }, term);
  return std::move(term);
}

constexpr std::int64_t kLeastTile = 16;

/// A multiple of a tile of 16 … 128 keys, or one off; 0 where no tile is within `most`.
std::int64_t border_at_a_tile(Draws& draws, std::int64_t most) {
  std::int64_t unit = kLeastTile << draws.below(4);
  while (unit > most) unit /= 2;
  if (unit < kLeastTile) return 0;
  const std::int64_t beside = draws.chance(50) ? 0 : draws.between(-1, 1);
  return std::min(most, unit * draws.between(1, most / unit) + beside);
}

template <class Term>
void move_borders(Term&, Draws&, std::int64_t) {}
void move_borders(WindowMask& window, Draws& draws, std::int64_t most) {
  if (most < kLeastTile) return;
  for (std::int64_t* limit : {&window.left, &window.right}) {
    if (*limit != WindowMask::kUnlimited) *limit = border_at_a_tile(draws, most);
  }
}
/// Two or three documents; fitted() stretches the last.
void move_borders(DocumentsMask& documents, Draws& draws, std::int64_t most) {
  if (most < kLeastTile) return;
  const std::int64_t first = border_at_a_tile(draws, most);
  documents.lengths = {first, border_at_a_tile(draws, most - first), 0};
}

void fit(CausalMask&, const Shape&) {}
void fit(WindowMask&, const Shape&) {}
/// Lengths are cut off, or the last one stretched, so that they sum to the keys.
void fit(DocumentsMask& documents, const Shape& shape) {
  std::int64_t left = shape.kv_tokens;
  for (std::int64_t& length : documents.lengths) {
    length = std::min(length, left);
    left -= length;
  }
  if (documents.lengths.empty()) documents.lengths.push_back(0);
  documents.lengths.back() += left;
}
void fit(PrefixMask&, const Shape&) {}
void fit(DrawnBits&, const Shape&) {}

using Terms = std::vector<CaseTerm>;

Terms simpler(const CausalMask&) { return {}; }
Terms simpler(const WindowMask&) {
  return {WindowMask{0, 0}, WindowMask{1, 0}, WindowMask{0, 1}, WindowMask{1, 1}};
}
/// Masks with a document boundary taken away: two neighbours become one.
Terms simpler(const DocumentsMask& documents) {
  Terms terms;
  for (std::size_t i = 0; i + 1 < documents.lengths.size(); ++i) {
    auto fewer = documents.lengths;
    fewer[i] += fewer[i + 1];
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    terms.emplace_back(DocumentsMask{std::move(fewer)});
  }
  return terms;
}
Terms simpler(const PrefixMask& prefix) {
  Terms terms;
  for (const std::int64_t tokens : smaller(prefix.tokens, 0))
    terms.emplace_back(PrefixMask{tokens});
  return terms;
}
Terms simpler(const DrawnBits&) { return {}; }

/// The terms that are taken; the first of them where intersections are not.
CaseMask terms_taken(const CaseMask& mask, const MaskAbilities& can) {
  std::vector<CaseTerm> kept;
  for (const CaseTerm& term : mask.terms()) {
    if (!can.kinds[term.index()]) continue;
    if (!kept.empty() && !can.intersections) break;
    kept.push_back(term);
  }
  return kept;
}

}  // namespace

std::vector<CaseTerm> blank_terms() {
  return []<class... Term>(std::type_identity<std::variant<Term...>>) {
    return std::vector<CaseTerm>{Term{}...};
  }(std::type_identity<CaseTerm>{});
}

CaseMask random_mask(Draws& draws, const Shape& shape) {
  const std::int64_t kind = draws.below(100);
  if (kind < 25) return {};
  if (kind < 45) return Terms{CausalMask{}};
  Terms terms = {random_term(draws, shape)};
  if (kind >= 80) terms.push_back(random_term(draws, shape));
  return terms;
}

CaseMask limited_mask(const CaseMask& mask, const Shape& shape, std::uint64_t seed,
                      const Capabilities& can) {
  constexpr int kTries = 256;
  CaseMask taken = terms_taken(mask, can.masks);
  Draws draws(seed);
  for (int n = 0; taken.terms().empty() && !can.masks.full && n < kTries; ++n) {
    const CaseMask drawn = random_mask(draws, shape);
    if (can.has(Ability::bit_masks) || !drawn.has_bits()) taken = terms_taken(drawn, can.masks);
  }
  return taken;
}

CaseMask random_window(Draws& draws, const Shape& shape) {
  WindowMask window;
  draw(window, draws, shape);
  Terms terms = {window};
  if (draws.chance(50)) terms.emplace_back(CausalMask{});
  return terms;
}

CaseMask three_masks(Draws& draws, const Shape& shape) {
  std::vector<CaseTerm> kinds = blank_terms();
  if (draws.chance(70)) std::erase_if(kinds, holds<DrawnBits>);
  Terms terms;
  while (terms.size() < 3) {
    const auto chosen = kinds.begin() + draws.below(std::ssize(kinds));
    std::visit([&](auto& known) { draw(known, draws, shape); }, *chosen);
    terms.push_back(std::move(*chosen));
    kinds.erase(chosen);
  }
  return terms;
}

CaseMask with_borders_at_tiles(const CaseMask& mask, Draws& draws, std::int64_t most) {
  Terms terms = mask.terms();
  for (CaseTerm& term : terms) {
    std::visit([&](auto& known) { move_borders(known, draws, most); }, term);
  }
  return terms;
}

CaseMask redrawn(const CaseMask& mask, Draws& draws, const Shape& shape) {
  Terms terms;
  for (const CaseTerm& term : mask.terms()) {
    terms.push_back(blank_terms()[term.index()]);
    std::visit([&](auto& known) { draw(known, draws, shape); }, terms.back());
  }
  return fitted(terms, shape);
}

CaseMask fitted(const CaseMask& mask, const Shape& shape) {
  Terms terms = mask.terms();
  for (CaseTerm& term : terms) std::visit([&](auto& known) { fit(known, shape); }, term);
  return terms;
}

std::vector<CaseMask> simpler_masks(const CaseMask& mask) {
  std::vector<CaseMask> masks = {CaseMask()};
  if (mask.terms().size() > 1) {
    for (const CaseTerm& term : mask.terms()) masks.emplace_back(Terms{term});
    for (std::size_t left_out = 0; mask.terms().size() > 2 && left_out < mask.terms().size();
         ++left_out) {
      Terms fewer = mask.terms();
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(left_out));
      masks.emplace_back(std::move(fewer));
    }
    return masks;
  }
  masks.emplace_back(Terms{CausalMask{}});
  for (const CaseTerm& term : mask.terms()) {
    for (CaseTerm& next : std::visit([](const auto& known) { return simpler(known); }, term)) {
      masks.emplace_back(Terms{std::move(next)});
    }
  }
  return masks;
}

std::int64_t complexity(const CaseMask& mask) {
  if (mask.terms().empty()) return 0;
  if (mask == CaseMask(Terms{CausalMask{}})) return 3;
  std::int64_t sum = 0;
  for (const CaseTerm& term : mask.terms()) {
    const std::string text = CaseMask(Terms{term}).text();
    sum += 6 + static_cast<std::int64_t>(text.size());
    for (const char letter : text) sum += letter >= '0' && letter <= '9' ? letter - '0' : 0;
  }
  return sum;
}

std::vector<std::int64_t> smaller(std::int64_t value, std::int64_t least) {
  std::vector<std::int64_t> values;
  if (value > least) values.push_back(least);
  const std::int64_t half = least + (value - least) / 2;
  if (half > least && half < value) values.push_back(half);
  if (value - 2 > half) values.push_back(value - 2);
  if (value - 1 > half) values.push_back(value - 1);
  return values;
}

}  // namespace ringlab::verify
