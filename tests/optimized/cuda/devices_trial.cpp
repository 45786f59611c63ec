#include "tests/optimized/cuda/devices_trial.h"

#include <fmt/format.h>

#include "optimized/ring/closed_forms.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "reference/attention/exact.h"

namespace ringlab::cuda {
namespace {

/// What a subject may be away from the exact result.
struct Allowed {
  ForwardTolerance forward;
  BackwardTolerance backward;
};

struct Exact {
  ExactForward forward;
  ExactBackward backward;
  explicit Exact(const AttentionInput& input)
      : forward(exact_forward(input)), backward(exact_backward(input, *input.dout)) {}
  Allowed allowed(const AttentionInput& input, const NumericsProfile& profile) const {
    return {forward_tolerance(input, forward, profile),
            backward_tolerance(input, *input.dout, backward, profile)};
  }
};

Tensor<double> sum(Tensor<double> a, const Tensor<double>& b) {
  for (std::size_t i = 0; i < a.values().size(); ++i) a.values()[i] += b.values()[i];
  return a;
}

TensorReport against(const std::string& name, const Tensor<double>& got,
                     const Tensor<double>& other, const Tensor<double>& allowed) {
  return compare(name, got.view(), other.view(), allowed.view());
}

/// Both are within their bounds of the same numbers.
Report against_engine(const RunResult& got, const RunResult& engine, const Allowed& a,
                      const Allowed& b) {
  const auto& g = *got.gradients;
  const auto& e = *engine.gradients;
  Report report;
  report.tensors = {
      against("out next to the engine's", got.output.out, engine.output.out,
              sum(a.forward.out, b.forward.out)),
      against("lse next to the engine's", got.output.lse, engine.output.lse,
              sum(a.forward.lse, b.forward.lse)),
      against("dq next to the engine's", g.dq, e.dq, sum(a.backward.dq, b.backward.dq)),
      against("dk next to the engine's", g.dk, e.dk, sum(a.backward.dk, b.backward.dk)),
      against("dv next to the engine's", g.dv, e.dv, sum(a.backward.dv, b.backward.dv))};
  return report;
}

}  // namespace

std::string DevicesCase::text() const { return fmt::format("{}, {}", ring.text(), schedule); }

DevicesTrial make_trial(const DevicesCase& c, DType dtype) {
  DevicesTrial trial{.ring = make_trial(c.ring, dtype), .options = {}};
  const ScheduleSpec spec = parse_schedule(c.schedule);
  trial.options.ranks = c.ring.ranks;
  trial.options.layout = c.ring.layout;
  trial.options.schedule = spec.kind;
  trial.options.node_ranks = spec.node_ranks;
  return trial;
}

template <class Element>
RunResult run_devices(const DevicesTrial& trial, const ring::DeviceKernels<Element>& kernels,
                      const ring::DeviceRun& run) {
  const AttentionInput input = trial.input();
  return ring::Engine().run(input, trial.options, ring::OnStreams<Element>(kernels, run));
}
template RunResult run_devices(const DevicesTrial&, const ring::DeviceKernels<Half>&,
                               const ring::DeviceRun&);
template RunResult run_devices(const DevicesTrial&, const ring::DeviceKernels<BFloat16>&,
                               const ring::DeviceRun&);

std::string judge_devices(const DevicesTrial& trial, const RunResult& got) {
  const AttentionInput input = trial.input();
  const NumericsProfile profile = ring::device_engine_profile(input.problem, trial.options);
  std::string wrong = judge(trial.ring, got.output, profile);
  if (wrong.empty()) wrong = judge(trial.ring, *got.gradients, profile);
  if (!wrong.empty()) return wrong;
  const Exact exact(input);
  const Allowed allowed = exact.allowed(input, profile);
  const Allowed engine = exact.allowed(input, ring::engine_profile(input.problem, trial.options));
  const Report both =
      against_engine(got, ring::Engine().run(input, trial.options), allowed, engine);
  return both.passed() ? "" : both.summary();
}

bool same_numbers(const RunResult& a, const RunResult& b) {
  return a.output.out.values() == b.output.out.values() &&
         a.output.lse.values() == b.output.lse.values() &&
         a.gradients->dq.values() == b.gradients->dq.values() &&
         a.gradients->dk.values() == b.gradients->dk.values() &&
         a.gradients->dv.values() == b.gradients->dv.values();
}

}  // namespace ringlab::cuda
