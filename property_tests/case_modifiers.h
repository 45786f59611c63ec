// The score modifiers of a case, and all that the verifier says of each kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reference/core/modifiers.h"
#include "reference/core/problem.h"

namespace ringlab::verify {

/// The modifiers of a case. Slopes and sinks, one of each per query head, and the dropped pairs
/// come from the seed of the case.
struct CaseModifiers {
  double softcap = 0;  ///< 0: none, else 0.25 … 1024, in quarters
  bool alibi = false;
  bool sinks = false;
  int dropout_percent = 0;  ///< 0 … 90

  /// The strength of a kind: the cap, the percentage dropped, else 1; 0: without it.
  double level(ModifierKind kind) const;
  void set(ModifierKind kind, double level);
  bool any() const { return *this != CaseModifiers(); }
  friend bool operator==(const CaseModifiers&, const CaseModifiers&) = default;
};

/// The words and the limits of a kind of modifier in tokens, sentences and random cases.
struct ModifierWords {
  std::string_view token;   ///< "cap" of "cap8"
  double step = 1;          ///< levels are its multiples
  double most = 1;          ///< the largest level; 1: there or not, and its token has no number
  int most_drawn = 1;       ///< in random cases, before the levels between whole numbers
  std::string_view phrase;  ///< in a sentence about the case; {} stands for the level
};
ModifierWords words_of(ModifierKind kind);

/// The modifiers of a case of this seed.
Modifiers make_modifiers(const CaseModifiers& modifiers, const Shape& shape, std::uint64_t seed);

}  // namespace ringlab::verify
