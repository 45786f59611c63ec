// One maker per stage; each is defined beside its stage.
#pragma once

#include "stages/common/stage.h"

namespace ringlab::stages {

Stage broadcast_stage();
Stage online_softmax_stage();
Stage flash_blocks_stage();
Stage merge_stage();
Stage ring_stage();
Stage causal_ring_stage();
Stage overlapped_ring_stage();
Stage balanced_ring_stage();
Stage overlapped_causal_ring_stage();
Stage backward_stage();

}  // namespace ringlab::stages
