#include "cli/bench_cpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "cli/bench_timing.h"
#include "cli/fma_peak.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/vectors.h"
#include "optimized/ring/engine.h"
#include "reference/core/tensor.h"

namespace ringlab::cli {
namespace {

/// A figure that is to reach something. Larger is better.
struct Goal {
  std::string id, what;
  double at_least = 0, target = 0;
};

struct Reached {
  Goal goal;
  Spread value;
};

const char* verdict(const Reached& reached) {
  if (reached.value.median >= reached.goal.target) return "target";
  return reached.value.median >= reached.goal.at_least ? "at least" : "missed";
}

/// `factor` over a ratio of times: the ends of the spread change places.
Spread inverse(const Spread& ratio, double factor) {
  return {factor / ratio.median, factor / ratio.p90, factor / ratio.p10};
}

template <class Element>
std::vector<Element> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Element> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<Element>(normal(random)));
  return values;
}

/// One head, one thread, all keys at once.
template <class Element>
class OneHead {
 public:
  using Real = Accumulator<Element>;

  OneHead(std::int64_t tokens, std::int64_t head_dim, const std::string& mask)
      : extents_{1, 1, tokens, head_dim},
        mask_(parse_mask(mask).bind(tokens, tokens)),
        positions_(Positions::all(tokens)),
        q_(random_values<Element>(extents_.size(), 1)),
        k_(random_values<Element>(extents_.size(), 2)),
        v_(random_values<Element>(extents_.size(), 3)),
        states_(static_cast<std::size_t>(tokens)),
        accs_(static_cast<std::size_t>(extents_.size())) {}

  void run() {
    std::ranges::fill(states_, SoftmaxState<Real>{});
    std::ranges::fill(accs_, Real(0));
    cpu::forward_block(
        cpu::Block<Element>{.mask = mask_,
                            .queries = positions_,
                            .keys = positions_,
                            .scale = 1 / std::sqrt(static_cast<double>(extents_.channels)),
                            .tiles = {cpu::kTileQueries, cpu::kTileKeys},
                            .q = dense_view(static_cast<const Element*>(q_.data()), extents_),
                            .k = dense_view(static_cast<const Element*>(k_.data()), extents_),
                            .v = dense_view(static_cast<const Element*>(v_.data()), extents_)},
        states_.data(), accs_.data());
  }
  /// Of the pairs that the mask allows: 2 products, 2 operations each.
  double flops() const {
    return 4.0 * static_cast<double>(mask_.count_all()) * static_cast<double>(extents_.channels);
  }

 private:
  const Extents extents_;
  const Mask mask_;
  const Positions positions_;
  const std::vector<Element> q_, k_, v_;
  std::vector<SoftmaxState<Real>> states_;
  std::vector<Real> accs_;
};

/// The forward kernel's share of the peak of multiply-adds.
std::vector<Reached> bench_forward(int rounds, std::int64_t tokens) {
  const std::string title = "forward kernel against the peak of multiply-adds";
  Progress progress(title);
  const FmaPeak peak;
  OneHead<float> full_128(tokens, 128, "full"), causal_128(tokens, 128, "causal");
  OneHead<float> full_64(tokens, 64, "full"), causal_64(tokens, 64, "causal");
  const double peak_flops = peak.run(causal_128.flops());
  const std::vector<Timing> timings =
      time_in_turn({{"peak", [&] { peak.run(peak_flops); }},
                    {"", [&] { full_128.run(); }},
                    {"", [&] { causal_128.run(); }},
                    {"", [&] { full_64.run(); }},
                    {"", [&] { causal_64.run(); }}},
                   {rounds, [&](int done, int total) { progress.update(done, total, title); }});
  const auto share = [&](int i, double flops) {
    return inverse(timings[static_cast<std::size_t>(i)].ratio, flops / peak_flops);
  };
  const std::string text = "share of the peak, f32, one thread, ";
  return {{{"C1 full", text + "head_dim 128", 0.90, 0.94}, share(1, full_128.flops())},
          {{"C1 causal", text + "head_dim 128, causal", 0.88, 0.92}, share(2, causal_128.flops())},
          {{"C2 full", text + "head_dim 64", 0.88, 0.92}, share(3, full_64.flops())},
          {{"C2 causal", text + "head_dim 64, causal", 0.86, 0.90}, share(4, causal_64.flops())}};
}

/// Ranks of one thread, and threads of one rank, on two cores.
std::vector<Reached> bench_ring(int rounds, std::int64_t tokens) {
  const std::string title = "ring of ranks against one shot";
  Progress progress(title);
  const Shape shape{.batch = 1,
                    .q_heads = 2,
                    .kv_heads = 2,
                    .q_tokens = tokens,
                    .kv_tokens = tokens,
                    .head_dim = 64,
                    .v_dim = 64};
  const Problem problem{.shape = shape,
                        .dtype = DType::f32,
                        .scale = 0.125,
                        .mask = parse_mask("causal").bind(tokens, tokens)};
  const auto q = random_values<double>(shape.q().size(), 1);
  const auto k = random_values<double>(shape.k().size(), 2);
  const auto v = random_values<double>(shape.v().size(), 3);
  const AttentionInput input{.problem = problem,
                             .q = dense_view(q.data(), shape.q()),
                             .k = dense_view(k.data(), shape.k()),
                             .v = dense_view(v.data(), shape.v())};
  const auto run = [&](int ranks, int threads) {
    RunOptions options{.ranks = ranks, .layout = LayoutKind::zigzag};
    options.threads = threads;
    options.tile_queries = cpu::kTileQueries;
    options.tile_keys = cpu::kTileKeys;
    return ring::run_engine(input, options).seconds;
  };
  const std::vector<Timing> timings =
      time_in_turn({{"one rank, two threads", {}, [&] { return run(1, 2); }},
                    {"one rank, one thread", {}, [&] { return run(1, 1); }},
                    {"two ranks", {}, [&] { return run(2, 1); }},
                    {"four ranks", {}, [&] { return run(4, 1); }}},
                   {rounds, [&](int done, int total) { progress.update(done, total, title); }});
  const std::string text = "time of one shot over that of a ring of ";
  return {{{"C7 P=2", text + "2 ranks, zigzag causal, 2 cores", 0.95, 0.98},
           inverse(timings[2].ratio, 1)},
          {{"C7 P=4", text + "4 ranks, zigzag causal, 2 cores", 0.95, 0.98},
           inverse(timings[3].ratio, 1)},
          {{"C9", "time of one thread over that of two, causal", 1.9, 1.97}, timings[1].ratio}};
}

}  // namespace

Json bench_cpu(int rounds, bool quick, Output& output) {
  std::vector<Reached> all = bench_forward(rounds, quick ? 2048 : 4096);
  for (Reached& reached : bench_ring(rounds, quick ? 4096 : 8192)) all.push_back(reached);
  TextTable table({{fmt::format("goal, vectors: {}", cpu::vectors_in_use())},
                   {"what"},
                   {"median (p10 to p90)", Align::right},
                   {"at least", Align::right},
                   {"target", Align::right},
                   {"reached"}});
  Json records = Json::array();
  for (const Reached& reached : all) {
    const Spread& value = reached.value;
    table.add({reached.goal.id, reached.goal.what,
               fmt::format("{:.3f} ({:.3f} to {:.3f})", value.median, value.p10, value.p90),
               fmt::format("{:.2f}", reached.goal.at_least),
               fmt::format("{:.2f}", reached.goal.target), verdict(reached)});
    records.push_back({{"id", reached.goal.id},
                       {"what", reached.goal.what},
                       {"value", value.median},
                       {"at_least", reached.goal.at_least},
                       {"target", reached.goal.target},
                       {"met", verdict(reached)},
                       {"spread", {value.p10, value.p90}}});
  }
  output.print("\n{}", table.text());
  return records;
}

}  // namespace ringlab::cli
