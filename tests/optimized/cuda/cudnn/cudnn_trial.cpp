#include "tests/optimized/cuda/cudnn/cudnn_trial.h"

#include <cmath>

#include "optimized/ring/vendor/cudnn_engine.h"
#include "reference/attention/exact.h"

namespace ringlab::cudnn {

cuda::DevicesCase random_case(unsigned seed, std::int64_t widest) {
  const char* const schedules[] = {"ring", "broadcast", "allgather", "bidirectional"};
  cuda::DevicesCase c{.ring = cuda::random_case(seed, widest)};
  c.schedule = schedules[seed % std::size(schedules)];
  return c;
}

namespace {

bool below(const Tensor<double>& exact, const Tensor<double>& allowed) {
  for (std::size_t i = 0; i < exact.values().size(); ++i) {
    if (std::abs(exact.values()[i]) > allowed.values()[i]) return false;
  }
  return true;
}

std::string judge_gradients(const AttentionInput& input, const AttentionGradients& got,
                            const NumericsProfile& profile) {
  const ExactBackward exact = exact_backward(input, *input.dout);
  const BackwardTolerance allowed = backward_tolerance(input, *input.dout, exact, profile);
  if (input.problem.mask.count_all() > 0 && below(exact.dv, allowed.dv)) {
    return "gradients of zero would pass";
  }
  const auto against = [](const char* name, const auto& tensor, const auto& other,
                          const auto& bound) {
    return compare(name, tensor.view(), other.view(), bound.view());
  };
  Report report;
  report.tensors = {against("dq", got.dq, exact.dq, allowed.dq),
                    against("dk", got.dk, exact.dk, allowed.dk),
                    against("dv", got.dv, exact.dv, allowed.dv)};
  return report.passed() ? "" : report.summary();
}

}  // namespace

std::string judge(const cuda::DevicesTrial& trial, const RunResult& got) {
  const AttentionInput input = trial.input();
  const ExactForward exact = exact_forward(input);
  const NumericsProfile profile = ring::cudnn_engine_profile(input.problem, trial.options);
  const Report report =
      compare_forward(got.output, exact, forward_tolerance(input, exact, profile));
  if (!report.passed() || !got.gradients) return report.passed() ? "" : report.summary();
  return judge_gradients(input, *got.gradients, profile);
}

}  // namespace ringlab::cudnn
