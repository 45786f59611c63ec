// C8: whole attention, from inputs to outputs of their type, against PyTorch's on the same threads.
#include <fmt/format.h>

#include <memory>

#include "cli/bench/cpu/attention_work.h"
#include "cli/bench/cpu/peak_loop.h"
#include "cli/bench/cpu/peer_vectors.h"
#include "cli/bench/cpu/torch_cases.h"
#include "cli/bench/measure/families.h"
#include "cli/bench/measure/peer.h"
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

/// Our kernels as a contender, timed by the same clock as the peer.
template <class Element>
Contender ours(const TorchCase& one, const std::shared_ptr<AttentionWork<Element>>& work) {
  const auto run = [work, pass = one.pass] {
    if (pass == Pass::forward) {
      work->run_forward();
    } else {
      work->run_backward();
    }
  };
  return one.threads == 1 ? on_one_thread("ours", run) : Contender{"ours", run};
}

class Match {
 public:
  Match(Peer& peer, std::int64_t tokens)
      : peer_(peer), tokens_(tokens), peaks_{peak_of(DType::f32), peak_of(DType::bf16)} {}

  template <class Element>
  void play(const TorchCase& one, const TimingOptions& options, Findings& findings) {
    const bool decodes = one.decoded > 0;
    const std::int64_t queries = decodes ? one.decoded : tokens_;
    const std::int64_t tokens = decodes ? kDecodedTokens : tokens_;
    const auto work =
        std::make_shared<AttentionWork<Element>>(AttentionSizes{.heads = one.heads,
                                                                .queries = queries,
                                                                .tokens = tokens,
                                                                .head_dim = one.head_dim,
                                                                .mask = one.mask,
                                                                .threads = one.threads});
    const double flops = one.pass == Pass::forward ? work->forward_flops() : work->backward_flops();
    const double peak = peaks_[one.dtype == DType::bf16 ? 1 : 0];
    const auto threads = static_cast<double>(one.threads);
    const Plausible plausible{.least_seconds =
                                  peak > 0 ? flops / (peak * threads * kBeyondPeak) : 0};
    const auto theirs = [&] { return peer_.ask(one.request(queries, tokens), plausible); };
    const std::vector<Timing> timings =
        time_in_turn({ours<Element>(one, work), {"PyTorch", {}, theirs}}, options);
    const std::string id = "C8." + one.id();
    if (!timings[1].failure.empty()) return findings.skip(id, timings[1].failure);
    findings.reached(id, timings[1].ratio);
    findings.beside(id, "ours, Gflop/s", inverse(timings[0].seconds, flops * 1e-9));
    findings.beside(id, "PyTorch, Gflop/s", inverse(timings[1].seconds, flops * 1e-9));
  }

 private:
  Peer& peer_;
  const std::int64_t tokens_;
  const double peaks_[2];
};

std::vector<TorchCase> wanted_cases(const Plan& plan) {
  std::vector<TorchCase> cases;
  for (const TorchCase& one : torch_cases()) {
    if (plan.wants("C8." + one.id())) cases.push_back(one);
  }
  return cases;
}

}  // namespace

Findings measure_against_torch(const Plan& plan) {
  if (plan.torch_python.empty()) {
    throw_environment_error({.where = "PyTorch",
                             .expected = "a Python that has it",
                             .actual = "none named",
                             .hint = "Name one with --torch-python or RINGLAB_TORCH_PYTHON; "
                                     "scripts/torch_peer makes one."});
  }
  Peer peer({.name = "PyTorch",
             .words = {plan.torch_python, "-c", std::string(torch_peer_source())},
             .environment = keep_to(cpu::vectors_in_use())});
  Match match(peer, plan.quick ? 1024 : 2048);
  const std::vector<TorchCase> cases = wanted_cases(plan);
  Findings findings;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const TorchCase& one = cases[i];
    const TimingOptions options = plan.timing(static_cast<int>(i), static_cast<int>(cases.size()));
    plan.find("C8." + one.id(), findings, [&] {
      check_cores(one.threads);
      if (one.dtype == DType::bf16) return match.play<BFloat16>(one, options, findings);
      match.play<float>(one, options, findings);
    });
  }
  return findings;
}

}  // namespace ringlab::bench
