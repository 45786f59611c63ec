// Whether bounds are as wide as the textbook says.
#pragma once

#include <string>

namespace ringlab::verify {

/// Of a subject whose sums are its only error (u_accumulate = 2^-12), the bounds of o, dq, dk and
/// dv are at least γ_n(u) Σ|terms|, the sums written out here. Empty when they are.
std::string bounds_cover_every_sum();

/// With one key and scores of zero the oracle bounds its error by 8 u of o and 3 u of lse.
std::string the_oracle_promises_what_it_can_keep();

/// Where one head has queries of zero and the next ones larger and larger ones, the fast oracle's
/// error of each row is at least what rounding its own largest score may lose.
std::string errors_are_those_of_their_own_head();

}  // namespace ringlab::verify
