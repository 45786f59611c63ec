#include "tests/optimized/cuda/cudnn/cudnn_trial.h"

#include "optimized/ring/vendor/cudnn_engine.h"

namespace ringlab::cudnn {

cuda::DevicesCase random_case(unsigned seed, std::int64_t widest) {
  const char* const schedules[] = {"ring", "broadcast", "allgather", "bidirectional"};
  cuda::DevicesCase c{.ring = ringlab::random_case(seed, widest)};
  c.schedule = schedules[seed % std::size(schedules)];
  return c;
}

std::string judge(const cuda::DevicesTrial& trial, const RunResult& got) {
  const NumericsProfile profile = ring::cudnn_engine_profile(trial.ring.problem, trial.options);
  const std::string wrong = judge(trial.ring, got.output, profile);
  return wrong.empty() && got.gradients ? judge(trial.ring, *got.gradients, profile) : wrong;
}

}  // namespace ringlab::cudnn
