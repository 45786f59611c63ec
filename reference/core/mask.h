// Masks: predicates on global positions, with interval algebra on top.
//
// Positions are global token indices, never local ones. Queries and keys are aligned at the bottom
// right: query i stands at key position p = i + (kv_tokens - q_tokens), so with equal lengths p =
// i. Every mask but the bit matrix allows, for each query, one interval of keys, and an
// intersection of intervals is an interval: that is what makes skipping, exact counting and
// balancing cheap.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reference/core/positions.h"
#include "reference/core/shared_bytes.h"

namespace ringlab {

// The kinds of mask terms. kWord begins a term's text, kForm is all of it; kIsInterval: the keys that
// a query sees are one interval, whose ends never move back from a query to the next.

/// Key j is visible to query i when j <= p.
struct CausalMask {
  static constexpr std::string_view kWord = "causal", kForm = "causal";
  static constexpr bool kIsInterval = true;
  friend bool operator==(const CausalMask&, const CausalMask&) = default;
};

/// Key j is visible when p - left <= j <= p + right. kUnlimited on a side removes that limit.
struct WindowMask {
  static constexpr std::string_view kWord = "window", kForm = "window:L,R";
  static constexpr bool kIsInterval = true;
  static constexpr std::int64_t kUnlimited = INT64_MAX;
  std::int64_t left = kUnlimited;
  std::int64_t right = kUnlimited;
  friend bool operator==(const WindowMask&, const WindowMask&) = default;
};

/// Key positions are cut into documents of these lengths (zero allowed); key j is visible when j
/// and p lie in the same document. A query whose p is in no document (p < 0) sees nothing.
struct DocumentsMask {
  static constexpr std::string_view kWord = "documents", kForm = "documents:LEN,LEN,…";
  static constexpr bool kIsInterval = true;
  std::vector<std::int64_t> lengths;
  friend bool operator==(const DocumentsMask&, const DocumentsMask&) = default;
};

/// Prefix language model: key j is visible when j < tokens or j <= p.
struct PrefixMask {
  static constexpr std::string_view kWord = "prefix", kForm = "prefix:N";
  static constexpr bool kIsInterval = true;
  std::int64_t tokens = 0;
  friend bool operator==(const PrefixMask&, const PrefixMask&) = default;
};

/// An explicit (q_tokens, kv_tokens) matrix, row-major, non-zero = visible.
struct BitMask {
  static constexpr std::string_view kWord = "file", kForm = "file:PATH";
  static constexpr bool kIsInterval = false;
  std::int64_t q_tokens = 0;
  std::int64_t kv_tokens = 0;
  SharedBytes bits;
  std::string source;  ///< the file it came from, for printing
};

using MaskTerm = std::variant<CausalMask, WindowMask, DocumentsMask, PrefixMask, BitMask>;

/// A term of every kind, without its numbers.
std::vector<MaskTerm> mask_kinds();
/// kWord of a term's kind.
std::string_view mask_word(const MaskTerm& term);

/// Half-open interval of key positions; empty when end <= begin.
struct KeyInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end > begin ? end - begin : 0; }
};

enum class Coverage { empty, full, partial };

/// The intersection of its terms; no terms means full attention. Immutable once bound to lengths.
class Mask {
 public:
  Mask() = default;  ///< full attention over zero tokens; see bind()
  /// Not bound yet: zero queries and keys, so nothing is allowed until bind().
  explicit Mask(std::vector<MaskTerm> terms);

  /// The same mask for these lengths. Input error when a term does not fit them (document lengths
  /// that do not sum to kv_tokens, a bit matrix of another shape) or holds a negative number.
  /// A prefix or window that reaches past the keys fits.
  Mask bind(std::int64_t q_tokens, std::int64_t kv_tokens) const;

  const std::vector<MaskTerm>& terms() const { return terms_; }
  std::int64_t q_tokens() const { return q_tokens_; }
  std::int64_t kv_tokens() const { return kv_tokens_; }

  /// The keys query i may see, before terms that are no intervals are applied; within [0,
  /// kv_tokens), and {0, 0} when there are none. A query outside [0, q_tokens) sees nothing.
  /// O(terms), and a binary search per documents term.
  KeyInterval interval(std::int64_t query) const;
  /// True when some term is no interval: then `interval` is only an outer bound.
  bool has_bits() const { return !bit_terms_.empty(); }
  /// The verdict on one pair inside the lengths of all terms that are no intervals; true if none.
  bool bits_allow(std::int64_t query, std::int64_t key) const;
  /// interval(query) contains key, and bits_allow() agrees.
  bool allows(std::int64_t query, std::int64_t key) const;

  /// Number of allowed pairs between two sets of positions, exactly.
  /// Without bit matrices O(queries · runs of keys), and O(runs) where all queries see the same; with
  /// them O(queries · keys).
  std::int64_t count(const Positions& queries, const Positions& keys) const;
  /// empty when no pair is allowed (also when a side is empty), full when all are, else partial.
  Coverage classify(const Positions& queries, const Positions& keys) const;
  /// count() over all queries and keys.
  std::int64_t count_all() const;

  /// The command-line form, e.g. "causal+window:128,0"; parse_mask(text()) gives the mask back.
  std::string text() const;

 private:
  /// Allowed keys of one query among `keys`.
  std::int64_t count_row(std::int64_t query, const Positions& keys) const;

  std::vector<MaskTerm> terms_;
  std::vector<MaskTerm> bit_terms_;                         ///< those that are no intervals
  std::vector<std::vector<std::int64_t>> document_starts_;  ///< per documents term, with the end
  std::int64_t q_tokens_ = 0;
  std::int64_t kv_tokens_ = 0;
};

/// Reads kForm of any kinds, or "full", joined with "+" (an intersection, in which "full" changes
/// nothing). Numbers are decimal, not negative, without spaces; the limits of a window may be "inf".
/// Unknown words and malformed numbers are usage errors that quote the word, and so is a term that
/// needs a file: mask_text.h reads those. The mask is not bound.
Mask parse_mask(std::string_view text);

}  // namespace ringlab
