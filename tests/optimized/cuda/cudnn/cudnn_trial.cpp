#include "tests/optimized/cuda/cudnn/cudnn_trial.h"

#include "optimized/ring/cudnn_engine.h"
#include "reference/attention/exact.h"

namespace ringlab::cudnn {

cuda::DevicesCase random_case(unsigned seed, std::int64_t widest) {
  const char* const schedules[] = {"ring", "broadcast", "allgather", "bidirectional"};
  cuda::DevicesCase c{.ring = cuda::random_case(seed, widest)};
  c.schedule = schedules[seed % std::size(schedules)];
  return c;
}

AttentionInput forward_input(const cuda::DevicesTrial& trial) {
  AttentionInput input = trial.input();
  input.dout.reset();
  return input;
}

std::string judge(const cuda::DevicesTrial& trial, const RunResult& got) {
  const AttentionInput input = forward_input(trial);
  const ExactForward exact = exact_forward(input);
  const NumericsProfile profile = ring::cudnn_engine_profile(input.problem, trial.options);
  const Report report =
      compare_forward(got.output, exact, forward_tolerance(input, exact, profile));
  return report.passed() ? "" : report.summary();
}

}  // namespace ringlab::cudnn
