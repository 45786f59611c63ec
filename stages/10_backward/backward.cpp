#include "stages/10_backward/backward.h"

#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "stages/common/stage_list.h"

namespace ringlab::stages {
namespace {

RunResult run(const AttentionInput& input, const RunOptions& options) {
  if (options.device != DeviceKind::cpu) {
    throw_usage_error({.where = "device of stage backward",
                       .expected = "cpu",
                       .actual = "cuda",
                       .hint = "This stage is plain loops, to be read"});
  }
  return run_ranks(input, options,
                   []<class Element>(RankProblem<Element>& r) { backward::attention(r); });
}

}  // namespace

Stage backward_stage() {
  return {.id = "10",
          .name = "backward",
          .idea = "dQ stays; dK and dV travel home with K and V.",
          .run = run,
          .profile = backward::profile,
          .costs = ring_costs,
          .skips_empty_blocks = true,
          .ring_traffic = true,
          .backward = true,
          .cpu_only = true};
}

}  // namespace ringlab::stages
