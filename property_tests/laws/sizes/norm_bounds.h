// Bounds of the errors in a long row, from norms of its tensors alone.
#pragma once

#include "reference/attention/exact.h"

namespace ringlab::verify {

/// Tolerances not below forward_tolerance(), in O(tokens) rather than O(pairs) time: every key of a
/// row is taken to have the largest product, and every value to be the largest of its channel. For
/// problems without modifiers. +inf where no promise can be made.
ForwardTolerance tolerance_by_norms(const AttentionInput& input, const ExactForward& exact,
                                    const NumericsProfile& profile);

}  // namespace ringlab::verify
