// Mistakes that no prediction shows, but a second run does: who depends on order, on memory, on
// what the network keeps.
#pragma once

#include <optional>
#include <vector>

#include "property_tests/diagnosis/evidence.h"

namespace ringlab::verify {

/// Equal numbers everywhere, NaN for NaN.
bool same_answer(const AttentionOutput& a, const AttentionOutput& b);

/// Runs the wrong cases again under other circumstances: another order of threads, other delays.
/// Empty when that changes nothing, or when the same run gives other numbers each time.
std::optional<Suspect> found_by_running_again(const Subject& subject,
                                              const std::vector<Evidence>& wrong);

/// Asks the laws, for answers that are right: the first law that names a mistake and is broken on
/// one of these cases.
std::optional<Suspect> found_by_laws(const Subject& subject, const std::vector<Case>& cases);

/// Finds runs that fail only where a send waits until it is received.
std::optional<Suspect> found_by_rendezvous(const Subject& subject, const std::vector<Case>& cases);

}  // namespace ringlab::verify
