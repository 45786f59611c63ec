// Costs of heads that neighbours deal among them (Jacobs et al. 2023): two all-to-alls, before
// attention and after it.
#pragma once

#include "reference/core/problem.h"
#include "reference/model/machine.h"

namespace ringlab::model {

/// Seconds of both all-to-alls of a pass. `problem` is attention of the tokens that the neighbours have
/// together, with all heads of one rank; `seen` the machine as ranks see it that deal nothing.
double dealing_seconds(const Problem& problem, int by_heads, const Machine& seen);

/// Bytes of q, k, v and out of one neighbour's own tokens and all heads.
double dealt_bytes(const Problem& problem, int by_heads);

}  // namespace ringlab::model
