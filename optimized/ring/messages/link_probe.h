// Whether links carry bytes, asked before anything depends on it.
#pragma once

#include "optimized/ring/messages/cuda_messages.h"

namespace ringlab::ring {

struct LinkEnds {
  int rank = 0;
  int ranks = 1;
  int device = 0;
};

/// Passes a few bytes that tell of their sender to the next rank, by the links for chunks and then
/// by those for sums; a rank that is alone sends to itself. Collective. Environment error when
/// other bytes arrive; those of the links when none do.
void probe_links(DeviceLinks& links, const LinkEnds& ends);

}  // namespace ringlab::ring
