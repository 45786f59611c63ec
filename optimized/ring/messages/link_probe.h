// A test that links carry bytes, before anything depends on them.
#pragma once

#include "optimized/ring/messages/cuda_messages.h"

namespace ringlab::ring {

struct LinkEnds {
  int rank = 0;
  int ranks = 1;
  int device = 0;
};

/// Passes a few bytes that depend on their sender to the next rank, by the links for chunks and
/// then by those for sums; a rank that is alone sends to itself. Collective. Environment error when
/// other bytes arrive; errors of the links when none do.
void probe_links(DeviceLinks& links, const LinkEnds& ends);

}  // namespace ringlab::ring
