// C3: the forward kernel against the best matrix product of a library, one thread each.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/cpu/peak_loop.h"
#include "optimized/bench/cpu/peer_vectors.h"
#include "optimized/bench/measure/families.h"
#include "optimized/bench/measure/peer.h"
#include "optimized/cpu/vectors.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

/// The most times the peak at which a peer is believed: a clock that changed explains no more.
constexpr double kBeyondFmaPeak = 1.25;

struct Candidate {
  PeerCommand command;
  std::unique_ptr<Peer> peer = nullptr;
};

/// OpenBLAS as it comes, OpenBLAS with the kernels for AVX-512 (it falls back to older ones on
/// processors that it does not know), and oneDNN.
std::vector<Candidate> candidates(const std::string& folder) {
  Environment one_thread = keep_to(cpu::vectors_in_use());
  one_thread.insert(one_thread.end(), {{"OPENBLAS_NUM_THREADS", "1"}, {"OMP_NUM_THREADS", "1"}});
  const std::string openblas = folder + "/ringlab-sgemm-openblas";
  std::vector<Candidate> all;
  all.push_back({{"OpenBLAS", {openblas}, one_thread}});
  if (cpu::vectors_in_use().starts_with("avx512")) {
    all.push_back({{"OpenBLAS SkylakeX", {openblas}, one_thread}});
    all.back().command.environment.emplace_back("OPENBLAS_CORETYPE", "SkylakeX");
  }
  all.push_back({{"oneDNN", {folder + "/ringlab-sgemm-onednn"}, one_thread}});
  return all;
}

double least_seconds(double flops) {
  if (!PeakLoop::missing(PeakOperation::f32_fma).empty()) return 0;
  return flops / (PeakLoop(PeakOperation::f32_fma).flops_per_s() * kBeyondFmaPeak);
}

/// Starts the peers that can run; adds to `reasons` why the others cannot.
std::vector<Candidate> start_all(const std::string& folder, std::string& reasons) {
  std::vector<Candidate> started;
  for (Candidate& candidate : candidates(folder)) {
    try {
      candidate.peer = std::make_unique<Peer>(candidate.command);
      started.push_back(std::move(candidate));
    } catch (const Error& error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  return started;
}

}  // namespace

Findings measure_against_sgemm(const Plan& plan) {
  Findings findings;
  std::string reasons;
  const std::vector<Candidate> peers = start_all(plan.peer_folder, reasons);
  const int n = plan.quick ? 2048 : 4096;
  const double sgemm_flops = 2.0 * n * n * n;
  const Plausible plausible{.least_seconds = least_seconds(sgemm_flops)};
  AttentionWork<float> work({.queries = 4096, .tokens = 4096, .head_dim = 128});
  std::vector<Contender> contenders = {on_one_thread("forward", [&] { work.run_kernel(); })};
  const std::string request = fmt::format("sgemm {}", n);
  for (const Candidate& one : peers) {
    contenders.push_back({one.command.name, {}, [&] { return one.peer->ask(request, plausible); }});
  }
  const std::vector<Timing> timings = time_in_turn(contenders, plan.timing());
  GoalOutcome& c3 = findings.found["C3"];
  for (std::size_t i = 1; i < timings.size(); ++i) {
    const Timing& timing = timings[i];
    if (!timing.failure.empty()) {
      reasons += (reasons.empty() ? "" : "; ") + timing.failure;
      continue;
    }
    const Spread ours_over = scaled(timing.ratio, work.forward_flops() / sgemm_flops);
    if (!c3.value || ours_over.median < c3.value->median) c3.value = ours_over;
    c3.beside.emplace_back("over " + timing.name, ours_over);
    c3.beside.emplace_back(timing.name + ", Gflop/s", inverse(timing.seconds, sgemm_flops * 1e-9));
  }
  c3.reason = reasons;
  return findings;
}

}  // namespace ringlab::bench
