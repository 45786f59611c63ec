// The smallest case that shows a mistake, and not just any mistake.
#pragma once

#include <optional>

#include "property_tests/diagnosis/insight.h"

namespace ringlab::verify {

/// A failure may shrink to a case that many mistakes explain: to one token on one rank, where a
/// lost hop looks like a lost row. Replaces the case of the diagnosed law, where more mistakes
/// explain it than the diagnosis names, by a slightly larger case that fewer explain; one that only
/// the named mistakes explain ends the search. Then a case of which some rank sees nothing, or with
/// more than three ranks, becomes one that a person works out by hand, where such a case shows it as
/// clearly: a token or two on each of two or three ranks, small whole numbers. At most 128 cases.
void keep_what_tells(const Subject& subject, const Insight& insight, SubjectVerdict& verdict);

/// Mistakes that explain the subject's answer on this one case: far more than explain its answers
/// on other cases, too. Empty where it throws.
std::vector<Suspect> explained_alone(const Subject& subject, const Case& c);

}  // namespace ringlab::verify
