// Modifiers of scores and weights besides scale and mask: soft-capping, ALiBi, sinks, dropout.
//
// Query i of head h stands at key position p = i + kv_tokens - q_tokens, as in core/mask.h. In this
// order, with every line but the first and the mask optional:
//   s_ij = scale · q_i·k_j
//   s_ij = softcap · tanh(s_ij / softcap)            soft-capping (Gemma 2)
//   s_ij = s_ij - alibi_slopes[h] · |p - j|          ALiBi (Press, Smith & Lewis 2022)
//   the mask                                         keys it hides take no part at all
//   lse_i = log(e^{sinks[h]} + Σ_j e^{s_ij})         a sink (gpt-oss): a score without a value
//   o_i   = Σ_j f_ij e^{s_ij - lse_i} v_j            dropout: f_ij is 0 or 1 / (1 - dropout)
//
// A sink takes part in a row's softmax exactly once, however many ranks hold its keys: as a state
// it is (row_max, row_sum, acc) = (sinks[h], 1, 0). A row that sees no key finishes as out = 0, lse
// = sinks[h]. Dropout leaves row_sum and lse alone, so that every P gives the same lse.
//
// Gradients: dS_ij = P_ij (f_ij dO_i·v_j - D_i) with P_ij = e^{s_ij - lse_i} and D_i = dO_i·o_i;
// dV_j = Σ_i f_ij P_ij dO_i; soft-capping multiplies what goes on to q and k by 1 - tanh²; a sink
// has dsink_h = -Σ_i e^{sinks[h] - lse_i} D_i.
//
// Dropout keeps pairs by a function of the problem alone, the same for every number of ranks,
// layout, tile and transport. With Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011):
//   key     = {low 32 bits of dropout_seed, high 32 bits}
//   counter = {j / 4, i, h, b}: batch b, query head h, global query i, global key j
//   pair (i, j) is kept when word j % 4 of the result >= dropout_threshold(dropout)
// so that four consecutive keys share one call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reference/core/kinds.h"

namespace ringlab {

struct Shape;

enum class ModifierKind { softcap, alibi, sinks, dropout };

/// The name of an option and in JSON.
constexpr std::string_view modifier_word(ModifierKind kind) {
  switch (kind) {
    case ModifierKind::softcap:
      return "softcap";
    case ModifierKind::alibi:
      return "alibi";
    case ModifierKind::sinks:
      return "sinks";
    case ModifierKind::dropout:
      return "dropout";
  }
  return "";
}
inline constexpr auto kModifierKinds = all_kinds<ModifierKind, modifier_word>();
/// The name of a modifier in a sentence: "soft-capping", "ALiBi".
std::string_view modifier_title(ModifierKind kind);

/// Nothing is modified by default. Numbers are doubles here; what a kernel makes of them in its own
/// type is part of its error bound, so round each of them once.
struct Modifiers {
  double softcap = 0;                     ///< 0: none
  std::vector<double> alibi_slopes = {};  ///< one per query head; empty: none
  std::vector<double> sinks = {};         ///< one per query head; empty: none
  double dropout = 0;                     ///< probability of dropping a pair; 0: none
  std::uint64_t dropout_seed = 0;

  /// True when scores differ from scale · q kᵀ.
  bool changes_scores() const { return softcap != 0 || !alibi_slopes.empty(); }
  bool has(ModifierKind kind) const;
  bool any() const { return changes_scores() || !sinks.empty() || dropout != 0; }
  friend bool operator==(const Modifiers&, const Modifiers&) = default;
};

/// Input error when a number is out of range: softcap, |slopes| and |sinks| at most 2^64, the
/// first two 0 or at least 2^-64; one slope and one sink per query head; 0 <= dropout <= 1 - 2^-32,
/// and where pairs are dropped fewer than 2^32 batches, heads and queries and 2^34 keys.
void check_modifiers(const Modifiers& modifiers, const Shape& shape);

/// The customary slopes: 2^{-8 (h + 1) / heads} for a power of two. Else those of the largest power
/// of two n below `heads`, followed by every other one of those of 2 n (the authors' rule).
std::vector<double> default_alibi_slopes(std::int64_t heads);

/// dropout · 2^32, rounded; a pair whose random word is below it is dropped.
std::uint32_t dropout_threshold(double dropout);
/// 1 / (1 - dropout), what a kept pair is multiplied by; to be rounded once to a kernel's type.
double dropout_factor(double dropout);

/// "none", or e.g. "softcap:50+alibi:0.5,0.25+sinks:0,-1+dropout:0.1,seed:7". Equal texts mean
/// equal modifiers: numbers are as long as it takes to give the same double back.
std::string modifiers_text(const Modifiers& modifiers);

/// Usage error when `modifiers` has any, for what does not know them. `who` is named.
void refuse_modifiers(const Modifiers& modifiers, const std::string& who);

}  // namespace ringlab
