// The mask of a case: the kinds of core/mask.h, with matrices of bits drawn from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "reference/core/mask.h"
#include "reference/core/problem.h"

namespace ringlab::verify {

/// "bits:SEED": a matrix of which three pairs in five are visible. A pair's bit depends on the seed
/// and the pair only, so that it stays when the shape shrinks.
struct DrawnBits {
  static constexpr std::string_view kWord = "bits", kForm = "bits:SEED";
  static constexpr bool kIsInterval = BitMask::kIsInterval;
  std::uint64_t seed = 0;
  friend bool operator==(const DrawnBits&, const DrawnBits&) = default;
};

template <class Variant>
struct WithDrawnBits;
template <class... Term>
struct WithDrawnBits<std::variant<Term...>> {
  using Type = std::variant<std::conditional_t<std::is_same_v<Term, BitMask>, DrawnBits, Term>...>;
};
/// A MaskTerm with DrawnBits in place of BitMask.
using CaseTerm = WithDrawnBits<MaskTerm>::Type;

/// An intersection of terms that fits any shape; no terms: everything is visible.
class CaseMask {
 public:
  CaseMask() = default;
  CaseMask(std::vector<CaseTerm> terms) : terms_(std::move(terms)) {}
  /// Parses a mask as on the command line, "causal+bits:7"; usage error for others and for files.
  CaseMask(const std::string& text);
  CaseMask(const char* text) : CaseMask(std::string(text)) {}

  const std::vector<CaseTerm>& terms() const { return terms_; }
  template <class Term>
  bool has() const {
    return std::any_of(terms_.begin(), terms_.end(), holds<Term>);
  }
  template <class Term>
  bool begins_with() const {
    return !terms_.empty() && holds<Term>(terms_.front());
  }
  /// True when a term is no interval of keys.
  bool has_bits() const;
  std::string text() const;
  friend bool operator==(const CaseMask&, const CaseMask&) = default;

 private:
  template <class Term>
  static bool holds(const CaseTerm& term) {
    return std::holds_alternative<Term>(term);
  }
  std::vector<CaseTerm> terms_;
};

/// The word for a term's kind: "causal".
std::string_view word_of(const CaseTerm& term);
/// The mask for this shape, not yet bound.
Mask make_mask(const CaseMask& mask, const Shape& shape);

}  // namespace ringlab::verify
