// Ready-made shape_case functions: needs of laws that cases keep when they shrink.
#pragma once

#include "property_tests/case.h"

namespace ringlab::verify {

/// The law makes its own numbers: the family does not matter, so the plainest.
Case plain_values(Case c);
/// The case with at least two channels in q and k: one to spare.
Case at_least_two_channels(Case c);
/// The case with at least one query and one key, its mask fitted.
Case with_tokens(Case c);
/// The case; where queries and keys are not as many, every other one is like decoding: two to four
/// queries on one rank, and blocks of keys that are wider than a vector. Where each query sees
/// another part of a block, hidden keys stand beside seen ones in vectors along the keys.
Case some_with_few_queries(Case c);
/// The case with a scale above 0: a larger product is a larger score.
Case with_positive_scale(Case c);
/// The case with two batches or two K/V heads, so that there is a neighbour to be independent of.
Case with_a_neighbour(Case c);

}  // namespace ringlab::verify
