// G1 to G6: our kernels, the peak of matrix products, and the peers, in turn.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "optimized/bench/gpu/gpu_families.h"
#include "optimized/bench/measure/torch_peer.h"

namespace ringlab::bench {
namespace {

constexpr std::int64_t kMatrix = 8192;
constexpr const char* kLines = "G6.lines";
constexpr const char* kLinesShare = "G6.share";
/// The goal that compares the same as kLinesShare.
constexpr const char* kLinesCase = "G1.t16k";
/// The most times the speed of matrix products at which a peer is believed.
constexpr double kBeyondDevicePeak = 1.5;

/// A thing that this machine may lack, and the reason.
template <class Thing>
struct Perhaps {
  std::optional<Thing> thing = {};
  std::string missing = {};
};

template <class Make>
auto perhaps(Make make) -> Perhaps<decltype(make())> {
  Perhaps<decltype(make())> one;
  one.missing = failure_of([&] { one.thing = make(); });
  return one;
}

/// The timed work of the peer, empty without a peer; and why better peers are missing.
struct Opponent {
  std::function<double()> seconds = {};
  std::vector<std::string> missing = {};
};

std::unique_ptr<Peer> start_torch(const Plan& plan) {
  const std::string python = plan.torch_python.empty() ? "python3" : plan.torch_python;
  return std::make_unique<Peer>(torch_peer(python, "cuda"));
}

class Matches {
 public:
  Matches(const GpuBench& bench, const Plan& plan)
      : bench_(bench),
        plan_(plan),
        product_(perhaps([&] { return bench.gpu.matrix_product(kMatrix); })),
        peer_(perhaps([&] { return start_torch(plan); })) {
    if (product_.thing) {
      multiply_ = product_.thing->seconds;
    } else if (peer_.thing) {
      multiply_ = asked("product " + std::to_string(kMatrix), 0);
    } else {
      return;
    }
    measure_peak();
  }

  void play(const Goal& goal, const TimingOptions& options, Findings& findings) {
    const std::string& id = goal.id;
    bench_.gpu.about(id);
    const GpuCase one = sized({.pass = goal.of.pass,
                               .mask = goal.of.mask,
                               .tokens = goal.of.tokens,
                               .head_dim = goal.of.head_dim});
    const GpuWork ours = bench_.gpu.attention(one);
    warm_up(bench_, ours);
    std::vector<Contender> contenders = {{"ours", {}, ours.seconds}};
    if (multiply_) contenders.push_back({"product", {}, multiply_});
    const Opponent peer = peer_of(goal.of.beside, one);
    if (peer.seconds) contenders.push_back({"peer", {}, peer.seconds});
    const std::vector<Timing> timings = time_in_turn(contenders, options);
    if (!timings[0].failure.empty()) return findings.skip(id, timings[0].failure);
    if (const std::string wrong = wrong_results_of(ours); !wrong.empty()) {
      return findings.skip(id, wrong);
    }
    findings.by(id, ours.kernel);
    add_figures(id, one, timings, findings);
    const Timing& theirs = timings.back();
    if (!peer.seconds || !theirs.failure.empty()) {
      return findings.skip(id, reasons(peer, theirs.failure));
    }
    findings.reached(id, theirs.ratio);
    findings.beside(id, "peer, TFLOP/s", inverse(theirs.seconds, one.flops() * 1e-12));
  }

 private:
  /// Measures the peak, if there is a matrix product; attention is measured without one, too.
  void measure_peak() {
    const std::string failure = failure_of([&] {
      warm_up(bench_, {"product", multiply_});
      peak_flops_per_s_ = matrix_flops(kMatrix) / multiply_();
    });
    if (!failure.empty()) multiply_ = {};
  }
  /// Quick runs have a quarter of the heads.
  GpuCase sized(GpuCase one) const {
    if (!plan_.quick) return one;
    one.q_heads /= 4;
    one.kv_heads /= 4;
    return one;
  }
  /// The peer of a match: cuDNN itself if this machine has it, else PyTorch's kernels, else none.
  Opponent peer_of(const std::string& backend, const GpuCase& one) {
    Opponent peer;
    if (backend == "cudnn") {
      const auto direct = perhaps([&] {
        GpuWork work = bench_.gpu.cudnn_attention(one);
        warm_up(bench_, work);
        return work;
      });
      if (direct.thing) return {direct.thing->seconds, {}};
      peer.missing.push_back(direct.missing);
    }
    if (!peer_.thing) {
      peer.missing.push_back(peer_.missing);
    } else {
      peer.seconds = asked(one.request(backend), one.flops());
    }
    return peer;
  }
  /// Reasons for missing peers, and `failure` of the one that was timed.
  static std::string reasons(const Opponent& peer, const std::string& failure) {
    std::vector<std::string> all = peer.missing;
    if (peer.seconds) all.push_back(failure);
    return fmt::format("{}", fmt::join(all, "; "));
  }
  std::function<double()> asked(const std::string& request, double flops) {
    const double least =
        peak_flops_per_s_ > 0 ? flops / (peak_flops_per_s_ * kBeyondDevicePeak) : 0;
    return
        [this, request, least] { return (*peer_.thing)->ask(request, {.least_seconds = least}); };
  }
  void add_figures(const std::string& id, const GpuCase& one, const std::vector<Timing>& timings,
                   Findings& findings) const {
    findings.beside(id, "ms", scaled(timings[0].seconds, 1e3));
    findings.beside(id, "TFLOP/s", inverse(timings[0].seconds, one.flops() * 1e-12));
    if (!multiply_ || !timings[1].failure.empty()) return;
    const double product = matrix_flops(kMatrix);
    findings.beside(id, "share of matrix peak", scaled(timings[1].ratio, one.flops() / product));
    findings.beside(id, "matrix peak, TFLOP/s", inverse(timings[1].seconds, product * 1e-12));
  }

  const GpuBench& bench_;
  const Plan& plan_;
  const Perhaps<GpuWork> product_;
  const Perhaps<std::unique_ptr<Peer>> peer_;
  /// Times a matrix product by the library, else by the peer; else empty.
  std::function<double()> multiply_ = {};
  double peak_flops_per_s_ = 0;
};

/// RINGLAB_HOPPER_KERNEL_LINES: how many forward_hopper.cuh had when this program was built.
void count_lines(const Plan& plan, Findings& findings) {
  const double lines = RINGLAB_HOPPER_KERNEL_LINES;
  if (plan.wants(kLines)) findings.reached(kLines, {lines, lines, lines});
  if (plan.wants(kLinesShare) && plan.wants(kLinesCase)) {
    findings.found[kLinesShare] = findings.found[kLinesCase];
  }
}

}  // namespace

Findings measure_gpu_matches(const GpuBench& bench, const Plan& plan) {
  Plan of_matches = plan;
  std::erase_if(of_matches.goals, [&](const Goal& goal) {
    return goal.of.beside.empty() || (goal.id == kLinesShare && plan.wants(kLinesCase));
  });
  Findings findings;
  if (!of_matches.goals.empty()) {
    Matches matches(bench, plan);
    findings = of_matches.for_each(std::bind_front(&Matches::play, &matches));
  }
  count_lines(plan, findings);
  return findings;
}

}  // namespace ringlab::bench
