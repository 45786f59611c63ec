// Figures that need no simulation.
#pragma once

#include "reference/model/machine.h"
#include "reference/model/work.h"

namespace ringlab::model {

/// The smallest number of tokens in a chunk from which on a hop takes no longer than the block that
/// hides it, in a ring whose links have this speed: with F operations a second, B bytes a second,
/// e bytes an element, and a share s of a block's pairs allowed,
///   s c² flops_per_pair / F >= c bytes_per_token / B,
/// for a full mask at equal widths c >= (F / B) (kv_heads / q_heads) (e / 2). Sums of gradients go
/// beside K and V. Latencies are left out.
/// `pair_share` is 1 for a full mask, 1/2 for a causal one whose work is spread evenly.
double hidden_from_tokens(const Work& work, const Machine& machine, const LinkSpeed& link,
                          double pair_share);

}  // namespace ringlab::model
