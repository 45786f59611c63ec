// Abilities and promises of a subject: what it takes, honours and keeps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/mask.h"
#include "reference/core/modifiers.h"
#include "reference/core/options/option_table.h"
#include "reference/core/problem.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::verify {

enum class Ability : std::uint8_t {
  // A subject has these unless it says otherwise.
  many_ranks,               ///< honours RunOptions::ranks, layout, transport
  counts_traffic,           ///< RunResult::ranks is filled in
  masked_may_be_nan,        ///< never lets a masked key or value reach the result
  cpu,                      ///< honours DeviceKind::cpu
  messages,                 ///< ranks send messages: honours RunOptions::transport, delay_seed
  tiles,                    ///< honours RunOptions::tile_queries and tile_keys
  bit_masks,                ///< takes masks that are no intervals of keys
  deterministic,            ///< same bits from run to run
  deterministic_gradients,  ///< of gradients, too, where results have them
  /// Keys appended at the end leave every earlier partial sum as it was. Not so in kernels that
  /// start at the last key, as some do for causal attention.
  sums_keys_in_order,
  /// A row has the same bits wherever it stands and whatever is computed beside it. Not so in
  /// kernels that cut their sums by the number of rows, as libraries of matrix products do.
  same_bits_per_row,
  /// The row sum divides once, when all is summed up. Where weights are divided before they meet V,
  /// not even a mean of integers is exact.
  divides_last,
  /// A power of a number next to 0 is exactly 1, and so is the weight of a best key. Not so where
  /// approximate powers are promised, which may be a step off there as anywhere else, and where
  /// fused products leave the rounding error of a scaled score.
  powers_next_to_0_are_1,
  /// A row keeps its bits beside NaN and infinities that it does not see. Not so in kernels that
  /// then compute it again, in another order: it stays within its bounds.
  same_bits_beside_nan,
  // Foreign implementations may lack these; all other subjects have them.
  lse,             ///< gives the log-sum-exp
  grouped_heads,   ///< more query heads than K/V heads
  rectangular,     ///< q_tokens and kv_tokens that differ
  other_v_dim,     ///< a v_dim that is not head_dim
  no_tokens,       ///< zero batches, queries or keys
  empty_rows,      ///< gives 0 and -inf for queries that see no key
  any_scale,       ///< else 1/sqrt(head_dim) only
  strided_inputs,  ///< reads views in any memory order; others are given dense copies

  // A subject lacks these unless it says otherwise.
  backward,            ///< gives gradients when AttentionInput::dout is set
  schedules,           ///< honours RunOptions::schedule, node_ranks and slots
  queries_travel,      ///< ranks compute rows of others
  ring_traffic,        ///< K/V travel neighbour to neighbour: closed forms apply
  prefetches,          ///< honours RunOptions::slots, beside the own chunk, on the plain ring
  skips_empty_blocks,  ///< computes no block that the mask hides
  threads,             ///< honours RunOptions::threads
  traces,              ///< keeps RankStats::events when RunOptions::trace is set
  cuda,                ///< honours DeviceKind::cuda, in builds that have it
  graphs,              ///< honours RunOptions::as_graph and free_multiprocessors, on devices
  gradient_order,      ///< honours RunOptions::deterministic, on devices
  foreign,             ///< made by foreign_subject(): throws Unsupported by itself
  few_shapes,          ///< compiles for every shape: its cases have one of a few
};
inline constexpr Ability kFirstUnusual = Ability::backward;
inline constexpr std::size_t kAbilities = static_cast<std::size_t>(Ability::few_shapes) + 1;

/// The enumerator's name: "many_ranks".
std::string ability_word(Ability ability);

/// A set of abilities: the usual ones to begin with.
class AbilitySet {
 public:
  constexpr bool has(Ability ability) const { return (bits_ & bit(ability)) != 0; }
  constexpr void set(Ability ability, bool has) {
    bits_ = has ? bits_ | bit(ability) : bits_ & ~bit(ability);
  }
  constexpr void add(std::initializer_list<Ability> more) {
    for (const Ability ability : more) set(ability, true);
  }
  constexpr void drop(std::initializer_list<Ability> lacking) {
    for (const Ability ability : lacking) set(ability, false);
  }

 private:
  static constexpr std::uint64_t bit(Ability ability) {
    return std::uint64_t{1} << static_cast<unsigned>(ability);
  }
  std::uint64_t bits_ = bit(kFirstUnusual) - 1;
};

/// Masks that a subject takes, besides no mask. Masks that are no intervals need
/// Ability::bit_masks, too.
struct MaskAbilities {
  std::array<bool, std::variant_size_v<MaskTerm>> kinds = all();  ///< in the order of MaskTerm
  bool intersections = true;                                      ///< of several masks it takes
  bool full = true;                                               ///< no mask at all

  template <class Term>
  bool& of() {
    return kinds[MaskTerm(Term{}).index()];
  }
  bool takes(const MaskTerm& term) const { return kinds[term.index()]; }
  static constexpr decltype(kinds) all() {
    decltype(kinds) every{};
    every.fill(true);
    return every;
  }
};

/// Score modifiers that a subject honours, of Problem::modifiers.
class ModifierAbilities {
 public:
  constexpr bool knows(ModifierKind kind) const { return known_[static_cast<std::size_t>(kind)]; }
  constexpr void set(ModifierKind kind, bool known) {
    known_[static_cast<std::size_t>(kind)] = known;
  }
  bool any() const { return *this != ModifierAbilities(); }
  friend bool operator==(const ModifierAbilities&, const ModifierAbilities&) = default;

 private:
  std::array<bool, kModifierKinds.size()> known_{};
};
inline constexpr ModifierAbilities kAllModifiers = [] {
  ModifierAbilities all;
  for (const ModifierKind kind : kModifierKinds) all.set(kind, true);
  return all;
}();

struct Capabilities : AbilitySet {
  std::vector<DType> dtypes;
  /// The order in which its ranks meet chunks, where it has one of its own.
  ScheduleKind schedule = ScheduleKind::ring;
  ModifierAbilities modifiers = {};
  MaskAbilities masks = {};
  std::int64_t max_head_dim = std::numeric_limits<std::int64_t>::max();  ///< of v_dim, too
  std::int64_t head_dim_multiple = 1;                                    ///< of v_dim, too
  std::int64_t token_multiple = 1;  ///< of q_tokens and kv_tokens
  bool nonpositive_scale = true;    ///< scales of 0 and below
};

/// True when a subject with these abilities honours the options that need the feature.
bool honours(const Capabilities& can, Feature feature);
/// The words for a subject that honours the feature: "has gradients".
std::string_view deed(Feature feature);

/// The first obstacle in this problem for a subject with these abilities, as the end of a sentence
/// that starts with its name ("takes no mask of bits"); empty when it can take the problem.
std::string obstacle(const Capabilities& can, const Problem& problem);

}  // namespace ringlab::verify
