#include "reference/attention/visible.h"

#include <type_traits>
#include <variant>

namespace ringlab {
namespace {

// An overload each for every kind: whether it may leave holes, and whether it shows a pair.
bool has_holes(const CausalMask&) { return false; }
bool has_holes(const WindowMask&) { return false; }
bool has_holes(const DocumentsMask&) { return false; }
bool has_holes(const PrefixMask&) { return false; }
bool has_holes(const BitMask&) { return true; }

struct Pair {
  std::int64_t query;
  std::int64_t key;
  std::int64_t position;  ///< the key position at which the query stands
};

bool sees(const CausalMask&, const Pair& pair) { return pair.key <= pair.position; }

bool sees(const WindowMask& window, const Pair& pair) {
  const std::int64_t back = pair.position - pair.key;  // how far the key lies behind the query
  const bool left = window.left == WindowMask::kUnlimited || back <= window.left;
  const bool right = window.right == WindowMask::kUnlimited || -back <= window.right;
  return left && right;
}

bool sees(const PrefixMask& prefix, const Pair& pair) {
  return pair.key < prefix.tokens || pair.key <= pair.position;
}

bool sees(const BitMask& matrix, const Pair& pair) {
  return (*matrix.bits)[static_cast<std::size_t>(pair.query * matrix.kv_tokens + pair.key)] != 0;
}

std::vector<std::int64_t> document_numbers(const DocumentsMask& documents) {
  std::vector<std::int64_t> numbers;
  for (std::size_t d = 0; d < documents.lengths.size(); ++d) {
    numbers.insert(numbers.end(), static_cast<std::size_t>(documents.lengths[d]),
                   static_cast<std::int64_t>(d));
  }
  return numbers;
}

bool same_document(const std::vector<std::int64_t>& document_of, const Pair& pair) {
  const std::int64_t tokens = static_cast<std::int64_t>(document_of.size());
  if (pair.position < 0 || pair.position >= tokens || pair.key >= tokens) return false;
  return document_of[static_cast<std::size_t>(pair.position)] ==
         document_of[static_cast<std::size_t>(pair.key)];
}

}  // namespace

bool may_have_holes(const MaskTerm& term) {
  return std::visit([](const auto& known) { return has_holes(known); }, term);
}

Visibility::Visibility(const Mask& mask, std::int64_t q_tokens, std::int64_t kv_tokens)
    : mask_(&mask), offset_(kv_tokens - q_tokens) {
  for (const MaskTerm& term : mask.terms()) {
    const DocumentsMask* documents = std::get_if<DocumentsMask>(&term);
    document_of_.push_back(documents ? document_numbers(*documents) : std::vector<std::int64_t>{});
  }
}

bool Visibility::operator()(std::int64_t query, std::int64_t key) const {
  const Pair pair{query, key, query + offset_};
  for (std::size_t t = 0; t < document_of_.size(); ++t) {
    const bool seen = std::visit(
        [&](const auto& term) {
          if constexpr (std::is_same_v<std::decay_t<decltype(term)>, DocumentsMask>) {
            return same_document(document_of_[t], pair);
          } else {
            return sees(term, pair);
          }
        },
        mask_->terms()[t]);
    if (!seen) return false;
  }
  return true;
}

}  // namespace ringlab
