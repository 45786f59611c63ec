// G1 to G6: our kernels, the peak of matrix products, and the peers, in turn.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/bench/gpu/gpu_families.h"
#include "cli/bench/gpu/gpu_goals.h"
#include "cli/bench/measure/peer.h"

namespace ringlab::bench {
namespace {

constexpr std::int64_t kMatrix = 8192;
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
  return std::make_unique<Peer>(PeerCommand{
      .name = "PyTorch", .words = {python, "-c", std::string(gpu_torch_peer_source())}});
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

  /// Plays the match and files what it measures under the goal `id`.
  void play(const std::string& id, const GpuMatch& match, const TimingOptions& options,
            Findings& findings) {
    bench_.gpu.about(id);
    const GpuCase one = sized(match.attention);
    const GpuWork ours = bench_.gpu.attention(one);
    warm_up(bench_, ours);
    std::vector<Contender> contenders = {{"ours", {}, ours.seconds}};
    if (multiply_) contenders.push_back({"product", {}, multiply_});
    const Opponent peer = peer_of(match, one);
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
  Opponent peer_of(const GpuMatch& match, const GpuCase& one) {
    Opponent peer;
    if (match.backend == "cudnn") {
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
      peer.seconds = asked(one.request(match.backend), one.flops());
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

/// The wanted matches by the ids of their goals.
std::vector<std::pair<std::string, GpuMatch>> wanted_matches(const Plan& plan) {
  std::vector<std::pair<std::string, GpuMatch>> wanted;
  for (const GpuMatch& match : gpu_matches()) {
    if (plan.wants(match.goal.id)) wanted.emplace_back(match.goal.id, match);
  }
  if (!plan.wants(kLinesShareGoal) || plan.wants(kLinesCase)) return wanted;
  const auto match = std::ranges::find_if(
      gpu_matches(), [](const GpuMatch& one) { return one.goal.id == kLinesCase; });
  wanted.emplace_back(kLinesShareGoal, *match);
  return wanted;
}

/// RINGLAB_HOPPER_KERNEL_LINES: how many forward_hopper.cuh had when this program was built.
void count_lines(const Plan& plan, Findings& findings) {
  const double lines = RINGLAB_HOPPER_KERNEL_LINES;
  if (plan.wants(kLinesGoal)) findings.reached(kLinesGoal, {lines, lines, lines});
  if (plan.wants(kLinesShareGoal) && plan.wants(kLinesCase)) {
    findings.found[kLinesShareGoal] = findings.found[kLinesCase];
  }
}

}  // namespace

Findings measure_gpu_matches(const GpuBench& bench, const Plan& plan) {
  const auto wanted = wanted_matches(plan);
  Findings findings;
  if (!wanted.empty()) {
    Matches matches(bench, plan);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::string& id = wanted[i].first;
      plan.find(id, findings, [&] {
        const int part = static_cast<int>(i), parts = static_cast<int>(wanted.size());
        matches.play(id, wanted[i].second, plan.timing(part, parts), findings);
      });
    }
  }
  count_lines(plan, findings);
  return findings;
}

}  // namespace ringlab::bench
