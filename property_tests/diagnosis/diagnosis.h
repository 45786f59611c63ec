// From a failure to the name of the mistake.
#pragma once

#include <string>
#include <vector>

#include "property_tests/law.h"

namespace ringlab::verify {

/// A mistake that somebody may have made.
struct Suspect {
  std::string id;    ///< "mask.one_key_too_many"
  std::string what;  ///< "query i sees key i + 1"
  friend bool operator==(const Suspect&, const Suspect&) = default;
};

struct Diagnosis {
  /// Mistakes whose prediction agrees with the subject in every number of the failing case and of
  /// all cases tried besides, where the truth does not. One: that is its name.
  std::vector<Suspect> explains;
  /// What else came out, as sentences: randomness, numbers that are none, shares of keys.
  std::vector<std::string> findings;
  int cases = 0;  ///< that every one of `explains` agrees with
  /// "this is: …", "consistent with: …; …", or empty.
  std::string sentence() const;
};

/// Compares what the subject gives on the failing case, and on more cases made from it, with what
/// named mistakes would give. Deterministic; well under a second for subjects that take
/// milliseconds per case. One that hangs is called for ten seconds, or a deadline longer.
Diagnosis diagnose(const Subject& subject, const Law& law, const Case& shrunk);

/// All mistakes that are known by name.
std::vector<Suspect> known_mistakes();

}  // namespace ringlab::verify
