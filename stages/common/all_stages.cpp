#include "stages/common/stage_list.h"

namespace ringlab::stages {

const std::vector<Stage>& all_stages() {
  static const std::vector<Stage> stages = {
      broadcast_stage(),       online_softmax_stage(), flash_blocks_stage(),
      merge_stage(),           ring_stage(),           causal_ring_stage(),
      overlapped_ring_stage(), balanced_ring_stage(),  overlapped_causal_ring_stage(),
      backward_stage()};
  return stages;
}

}  // namespace ringlab::stages
