// Random cases, and the cases one step simpler than a given one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "property_tests/abilities.h"
#include "property_tests/case.h"
#include "property_tests/generators/draws.h"

namespace ringlab::verify {

/// The number that all seeds of random_case() are below.
inline constexpr std::uint64_t kCaseSeeds = 1'000'000;

/// A random case: 0 … 70 tokens (small ones more often), 1 … 9 channels, 1 … 9 ranks (also more
/// than tokens), grouped heads, masks of every kind and intersections of two. Now and then heads of
/// up to 256 channels, 16 heads in a group, three masks, 6 batches, or a scale not above 0.
Case random_case(Draws& draws);

/// Valid cases that differ from `c` in one field and are simpler, the boldest step first.
std::vector<Case> simpler_cases(const Case& c);
/// A measure that falls with every step of simpler_cases(), so that shrinking ends.
std::int64_t complexity(const Case& c);

/// `c` as this subject can run it: one of its dtypes, one rank when it knows only one, shapes,
/// masks and modifiers that it takes.
Case limited_to(Case c, const Capabilities& can);

/// The case with numbers of tokens that the subject takes: whole multiples of its unit.
Case with_whole_tokens(Case c, const Capabilities& can);

/// The classes a case falls in, for coverage: "mask causal", "layout zigzag", "more ranks than
/// tokens", …
std::vector<std::string> classes_of(const Case& c);
/// The share of each class among random cases that a subject with these abilities is given; classes
/// that it is never given are left out.
std::map<std::string, double> drawn_shares(const Capabilities& can);
/// The class of cases whose gradients laws look at.
inline constexpr const char* kGradientsClass = "gradients";

}  // namespace ringlab::verify
