// Mistakes that no prediction shows, but a second run does: answers that depend on the order of
// threads, on memory, on delays or buffers of the network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "property_tests/diagnosis/evidence.h"

namespace ringlab::verify {

/// Equal numbers everywhere, NaN for NaN.
bool same_answer(const AttentionOutput& a, const AttentionOutput& b);

/// A mistake, or, where none is found, an observation without its cause; both may be missing.
struct Discovery {
  std::optional<Suspect> mistake = {};
  std::string seen = {};
  bool any() const { return mistake || !seen.empty(); }
};
/// The mistake or the observation that breaking this law tells.
Discovery discovery_of(const Law& law, const Subject& subject);

/// Runs the wrong cases again under other circumstances: another order of threads, other delays.
/// Empty when that changes nothing, or when the same run gives other numbers each time.
Discovery found_by_running_again(const Subject& subject, const std::vector<Evidence>& wrong);

/// Tries laws on a subject whose answers are right: the discovery of the first law that is broken
/// each time on one of these cases.
Discovery found_by_laws(const Subject& subject, const std::vector<Case>& cases);

/// True when this case breaks the law three times out of three, and not by throwing.
bool breaks_each_time(const Subject& subject, const Law& law, const Case& c);

/// Finds masked keys and values that take part with weight 0: a number there changes nothing, NaN
/// does.
std::optional<Suspect> found_by_masked_nan(const Subject& subject, const std::vector<Case>& cases);

/// Finds runs that fail only where a send waits until it is received.
std::optional<Suspect> found_by_rendezvous(const Subject& subject, const std::vector<Case>& cases);

}  // namespace ringlab::verify
