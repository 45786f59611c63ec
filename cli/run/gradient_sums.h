// The sums of gradients of long random runs: gathered from the ranks of a job, and printed.
#pragma once

#include "cli/line/output.h"
#include "optimized/transport/communicator.h"
#include "property_tests/gradient_identities.h"

namespace ringlab::cli {

/// Adds those of all ranks to those of rank 0. To be called by all ranks.
void gather_sums(verify::GradientIdentities& mine, Communicator& network);

/// Says of each whether it is what it has to be.
void print_identities(const verify::GradientIdentities& sums, Json& document, Output& output);

}  // namespace ringlab::cli
