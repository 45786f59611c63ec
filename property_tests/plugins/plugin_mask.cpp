#include "property_tests/plugins/plugin_mask.h"

#include <algorithm>
#include <limits>
#include <set>

namespace ringlab::plugins {
namespace {

// The RINGLAB_MASK_ bit of each kind. Kinds without one of their own are RINGLAB_MASK_BYTES.
std::uint32_t bit_of(const CausalMask&) { return RINGLAB_MASK_CAUSAL; }
std::uint32_t bit_of(const WindowMask&) { return RINGLAB_MASK_WINDOW; }
std::uint32_t bit_of(const DocumentsMask&) { return RINGLAB_MASK_DOCUMENTS; }
std::uint32_t bit_of(const PrefixMask&) { return RINGLAB_MASK_PREFIX; }
std::uint32_t bit_of(const BitMask&) { return RINGLAB_MASK_BYTES; }

/// Takes the terms of a mask, one by one.
class Terms {
 public:
  explicit Terms(PluginMask& result) : result_(result), mask_(result.mask) {
    mask_.window_left = mask_.window_right = std::numeric_limits<std::int64_t>::max();
    mask_.prefix_tokens = std::numeric_limits<std::int64_t>::max();
  }

  template <class Term>
  void operator()(const Term& term) {
    mask_.kinds |= bit_of(term);
    take(term);
  }

  void finish() {
    if ((mask_.kinds & RINGLAB_MASK_PREFIX) == 0) mask_.prefix_tokens = 0;
    if ((mask_.kinds & RINGLAB_MASK_DOCUMENTS) == 0) return;
    result_.starts.assign(cuts_.begin(), cuts_.end());
    mask_.documents = std::ssize(result_.starts) - 1;
  }

 private:
  void take(const CausalMask&) {}
  void take(const WindowMask& window) {
    mask_.window_left = std::min(mask_.window_left, window.left);
    mask_.window_right = std::min(mask_.window_right, window.right);
  }
  void take(const DocumentsMask& documents) {
    std::int64_t start = 0;
    cuts_.insert(start);
    for (const std::int64_t length : documents.lengths) cuts_.insert(start += length);
  }
  void take(const PrefixMask& prefix) {
    mask_.prefix_tokens = std::min(mask_.prefix_tokens, prefix.tokens);
  }
  void take(const BitMask&) {}

  PluginMask& result_;
  ringlab_mask& mask_;
  std::set<std::int64_t> cuts_;
};

}  // namespace

// Intervals are always there; they say everything about every mask but a bit matrix, for which
// RINGLAB_MASK_BYTES is the only form.
PluginMask plugin_mask(const Mask& mask, std::uint32_t abilities) {
  PluginMask result;
  Terms terms(result);
  for (const MaskTerm& term : mask.terms()) std::visit(terms, term);
  terms.finish();
  const std::int64_t shift = mask.kv_tokens() - mask.q_tokens();
  for (std::int64_t i = 0; i < mask.q_tokens(); ++i) {
    const KeyInterval keys = mask.interval(i);
    result.positions.push_back(i + shift);
    result.visible_begin.push_back(keys.begin);
    result.visible_end.push_back(std::max(keys.begin, keys.end));
  }
  if ((abilities & RINGLAB_MASK_BYTES) == 0 || result.mask.kinds == 0) return result;
  for (std::int64_t i = 0; i < mask.q_tokens(); ++i) {
    for (std::int64_t j = 0; j < mask.kv_tokens(); ++j) {
      result.bytes.push_back(mask.allows(i, j) ? 1 : 0);
    }
  }
  return result;
}

verify::MaskAbilities mask_abilities(std::uint32_t abilities) {
  const bool all = (abilities & (RINGLAB_MASK_INTERVALS | RINGLAB_MASK_BYTES)) != 0;
  const auto has = [&](std::uint32_t kind) { return all || (abilities & kind) != 0; };
  verify::MaskAbilities masks{.intersections = has(RINGLAB_MASK_INTERSECTIONS)};
  for (const MaskTerm& kind : mask_kinds()) {
    const auto takes = [&](const auto& term) { return !term.kIsInterval || has(bit_of(term)); };
    masks.kinds[kind.index()] = std::visit(takes, kind);
  }
  return masks;
}

}  // namespace ringlab::plugins
