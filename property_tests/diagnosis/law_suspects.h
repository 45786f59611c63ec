// Laws that name a mistake by themselves when the answers are right.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "property_tests/diagnosis/diagnosis.h"

namespace ringlab::verify {

/// The mistake that breaking this law means for a subject whose answers are right; empty for laws
/// about numbers. Of plugins nothing is said about messages and threads inside, which no law sees.
std::optional<Suspect> suspect_of_law(const Law& law, const Subject& subject);
/// A sentence on what breaking this law shows without saying why; empty for laws about numbers,
/// and for laws that name a mistake.
std::string seen_in_law(const Law& law);
std::vector<Suspect> law_suspects();
/// The mistake behind runs that fail only where sends wait: every rank sends before it receives.
Suspect send_before_receive();
/// The mistakes behind NaN that shows although it is masked: in values, and in keys.
std::vector<Suspect> masked_nan_suspects();

}  // namespace ringlab::verify
