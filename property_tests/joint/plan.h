// The plan of a verification: cases in which all that a subject claims meets pairwise, and in which
// heads, groups and lengths are those of models.
#pragma once

#include <cstdint>
#include <vector>

#include "property_tests/case.h"
#include "property_tests/generators/draws.h"
#include "property_tests/joint/factors.h"

namespace ringlab::verify {

/// The work of a planned case: over all heads, pairs of a query and a key times their channels.
struct Work {
  std::int64_t subject;    ///< in all rows
  std::int64_t reference;  ///< in the rows compared, elements and modifiers counted besides
};
/// The cases of a pass. Gradients depend on all rows, and are compared in all. Rounds of each further
/// reach have budgets four times as large.
struct PlannedPass {
  Work cells;  ///< the most for a case of claimed_cells(); larger cells are left out
  Work pairs;
  int enlargements;  ///< of the budget of pairs, by 2, for pairs of sizes that exceed it
  bool compares_all_rows;
};
inline constexpr PlannedPass kPlannedForward{.cells = {.subject = 3 << 24, .reference = 3 << 24},
                                             .pairs = {.subject = 1 << 20, .reference = 1 << 19},
                                             .enlargements = 8,
                                             .compares_all_rows = false};
inline constexpr PlannedPass kPlannedGradients{.cells = {.subject = 1 << 24, .reference = 7 << 20},
                                               .pairs = {.subject = 1 << 20, .reference = 1 << 20},
                                               .enlargements = 8,
                                               .compares_all_rows = true};

/// The cases of a seed in a round, counted from 0: claimed_cells() first, then further cases until
/// all pairs of classes have met that the budget allows to meet. A subject that compiles for every
/// shape has the first few only.
std::vector<Case> planned_cases(const Capabilities& can, const PlannedPass& pass,
                                std::uint64_t seed, std::uint64_t round);

/// The draws of a plan: other ones in each round, so that rounds bring other triples together.
inline Draws draws_of_round(std::uint64_t seed, std::uint64_t round) {
  return round == 0 ? Draws(seed) : Draws(seed, {static_cast<std::int64_t>(round)});
}

/// Cases of a seed in a round whose numbers of keys (under each claimed mask), queries, heads or
/// documents are powers of two, or one off: 2^7, 2^8, 2^12, 2^15, 2^16, in later rounds up to 2^19
/// for the last; everything else is small. ALiBi and dropout have keys of their own. With `few_pairs` one query and two of the masks.
std::vector<Case> far_cases(const Capabilities& can, bool few_pairs, std::uint64_t seed,
                            std::uint64_t round);

/// Rows of o that a case compares with the reference, all where they are few: heads at even
/// distances, some of a group where there is one K/V head, and queries of each.
struct ComparedRows {
  std::vector<std::int64_t> heads = {}, queries = {};
};
ComparedRows compared_rows(const Case& c);
/// Seeds so far apart stand for the same memory orders, and for other values.
inline constexpr std::uint64_t kPlannedSeeds = 4;
/// The memory order of the inputs of a planned case, by its seed.
InputOrder input_order(const Case& c);

/// A mask of the class for the shape: windows and documents long and short, beside powers of two
/// and tiles, the last document mostly the longest. The queries see the ends of most.
CaseMask planned_mask(Draws& draws, std::int8_t mask_class, const Shape& shape);
/// A size of the class, in half of the cases at or beside a multiple of 16 … 512.
std::int64_t planned_size(Draws& draws, const SizeClass& sizes, std::int64_t stretch);

}  // namespace ringlab::verify
