// Diagnosis: from a failure to the name of the mistake.
#pragma once

#include <string>
#include <vector>

#include "property_tests/law.h"

namespace ringlab::verify {

/// A mistake that an implementation may contain.
struct Suspect {
  std::string id;    ///< "mask.one_key_too_many"
  std::string what;  ///< "query i sees key i + 1"
  int terms = 1;     ///< how much the edit speaks of: of several explanations the simplest counts
  friend bool operator==(const Suspect&, const Suspect&) = default;
};

/// Keeps the simplest ones: where a subject has one chunk, its last key is that of each chunk, too.
void keep_simplest(std::vector<Suspect>& suspects);

struct Diagnosis {
  /// Mistakes whose prediction agrees with the subject in every number of the failing case and of
  /// all cases tried besides, where the truth does not. A single one is the diagnosis. Where no
  /// mistake alone explains that, two may; they are one suspect, with the id "A + B".
  std::vector<Suspect> explains;
  /// Observations besides, as sentences: randomness, NaN, the place of an event, effects of delays.
  std::vector<std::string> findings;
  int cases = 0;  ///< tried cases that every one of `explains` agrees with
  /// "this is: …", "consistent with: …; …", or empty.
  std::string sentence() const;
};

/// Compares the subject's answers on the failing case, and on more cases made from it, with the
/// answers that named mistakes would give. Deterministic; well under a second for subjects that
/// take milliseconds per case. A subject that hangs is called for ten seconds, or a deadline longer.
Diagnosis diagnose(const Subject& subject, const Law& law, const Case& shrunk);

/// All mistakes that are known by name.
std::vector<Suspect> known_mistakes();

}  // namespace ringlab::verify
