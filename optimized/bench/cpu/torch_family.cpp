// C8: whole attention, from inputs to outputs of their type, against PyTorch's on the same threads.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/cpu/peak_loop.h"
#include "optimized/bench/cpu/peer_vectors.h"
#include "optimized/bench/measure/families.h"
#include "optimized/bench/measure/peer.h"
#include "optimized/bench/measure/torch_peer.h"
#include "optimized/cpu/vectors.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

/// The most times the peak at which a peer is believed: a clock that changed explains no more.
constexpr double kBeyondPeak = 1.25;

/// Peak operations per second of one thread; 0 where no loop measures it.
double peak_of(DType dtype) {
  const PeakOperation operation =
      dtype == DType::bf16 ? operation_for_bf16() : PeakOperation::f32_fma;
  return PeakLoop::missing(operation).empty() ? PeakLoop(operation).flops_per_s() : 0;
}

/// A contender of ours, timed by the same clock as the peer.
Contender ours(const std::string& name, int threads, std::function<void()> work) {
  return threads == 1 ? on_one_thread(name, std::move(work)) : Contender{name, std::move(work)};
}

class Match {
 public:
  Match(Peer& peer, std::int64_t tokens)
      : peer_(peer), tokens_(tokens), peaks_{peak_of(DType::f32), peak_of(DType::bf16)} {}

  template <class Element>
  void play(const Goal& goal, const TimingOptions& options, Findings& findings) {
    GoalCase of = goal.of;
    if (of.tokens == 0) of.tokens = tokens_;
    if (of.queries == 0) of.queries = of.tokens;
    AttentionWork<Element> work({.heads = of.heads,
                                 .queries = of.queries,
                                 .tokens = of.tokens,
                                 .head_dim = of.head_dim,
                                 .mask = of.mask,
                                 .threads = of.threads});
    const bool forward = of.pass == Pass::forward;
    const double flops = forward ? work.forward_flops() : work.backward_flops();
    const double peak = peaks_[of.dtype == DType::bf16 ? 1 : 0] * of.threads * kBeyondPeak;
    const Plausible plausible{.least_seconds = peak > 0 ? flops / peak : 0};
    const std::string request =
        torch_request(of, {.kv_heads = of.heads, .how = fmt::format("{}", of.threads)});
    const std::vector<Timing> timings = time_in_turn(
        {ours("ours", of.threads, [&] { forward ? work.run_forward() : work.run_backward(); }),
         ours("kernel", of.threads,
              [&] { forward ? work.run_kernel() : work.run_backward_kernel(); }),
         {"PyTorch", {}, [&] { return peer_.ask(request, plausible); }}},
        options);
    if (!timings[2].failure.empty()) return findings.skip(goal.id, timings[2].failure);
    findings.reached(goal.id, timings[2].ratio);
    findings.beside(goal.id, "ours, Gflop/s", inverse(timings[0].seconds, flops * 1e-9));
    findings.beside(goal.id, "kernel alone, Gflop/s", inverse(timings[1].seconds, flops * 1e-9));
    findings.beside(goal.id, "PyTorch, Gflop/s", inverse(timings[2].seconds, flops * 1e-9));
  }

 private:
  Peer& peer_;
  const std::int64_t tokens_;
  const double peaks_[2];
};

}  // namespace

Findings measure_against_torch(const Plan& plan) {
  if (plan.torch_python.empty()) {
    throw_environment_error({.where = "PyTorch",
                             .expected = "a Python that has it",
                             .actual = "none named",
                             .hint = "Name one with --torch-python or RINGLAB_TORCH_PYTHON; "
                                     "scripts/peers torch makes one."});
  }
  PeerCommand command = torch_peer(plan.torch_python, "cpu");
  command.environment = keep_to(cpu::vectors_in_use());
  Peer peer(std::move(command));
  Match match(peer, plan.quick ? 1024 : 2048);
  return plan.for_each([&](const Goal& goal, const TimingOptions& options, Findings& findings) {
    check_cores(goal.of.threads);
    if (goal.of.dtype == DType::bf16) return match.play<BFloat16>(goal, options, findings);
    match.play<float>(goal, options, findings);
  });
}

}  // namespace ringlab::bench
