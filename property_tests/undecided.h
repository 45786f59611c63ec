// Elements so close to a subject's bound that the fp64 reference cannot say on which side they lie.
//
// A subject's own bound B says how far a correct subject may be from the true value; the tolerance
// of a comparison is B + e, with e the certified error of the reference, so that no correct subject
// fails. An element further than B - e and not further than B + e from the reference passes, and
// might be wrong all the same. Here it is compared with double-double numbers.
#pragma once

#include <cstdint>

#include "reference/attention/exact.h"

namespace ringlab::verify {

struct Settlement {
  std::int64_t undecided = 0;  ///< right + wrong + left
  std::int64_t right = 0;      ///< within the subject's own bound
  std::int64_t wrong = 0;      ///< beyond it
  /// Too near the bound to tell, by its own rounding: 2^-30 of it and 2^-52 of B + e.
  std::int64_t left = 0;

  void add(const Settlement& other);
};

/// Settles o and lse: recomputes the rows with undecided elements, no others. `got`, `exact` and
/// `tolerance` hold the rows that `options` names. Where nothing is undecided it only compares.
Settlement settle_undecided(const AttentionInput& input, const AttentionOutput& got,
                            const ExactForward& exact, const ForwardTolerance& tolerance,
                            const ExactOptions& options = {});

}  // namespace ringlab::verify
