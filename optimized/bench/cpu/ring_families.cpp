// C7, C9 and C10: what a ring costs beyond one shot, in time and in memory, and what a second
// thread brings.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/measure/families.h"
#include "optimized/ring/engine.h"

namespace ringlab::bench {
namespace {

/// Causal f32 problem with inputs of its own.
class RingProblem {
 public:
  RingProblem(std::int64_t heads, std::int64_t tokens)
      : problem_{.shape = {.batch = 1,
                           .q_heads = heads,
                           .kv_heads = heads,
                           .q_tokens = tokens,
                           .kv_tokens = tokens,
                           .head_dim = 64,
                           .v_dim = 64},
                 .dtype = DType::f32,
                 .scale = 0.125,
                 .mask = parse_mask("causal").bind(tokens, tokens)},
        q_(normal_values<double>(problem_.shape.q().size(), 1)),
        k_(normal_values<double>(problem_.shape.k().size(), 2)),
        v_(normal_values<double>(problem_.shape.v().size(), 3)) {}

  const Problem& problem() const { return problem_; }
  AttentionInput input() const {
    return {.problem = problem_,
            .q = dense_view(q_.data(), problem_.shape.q()),
            .k = dense_view(k_.data(), problem_.shape.k()),
            .v = dense_view(v_.data(), problem_.shape.v())};
  }
  RunResult run(int ranks, int threads) const {
    return ring::Engine().run(input(), options(ranks, threads));
  }
  static RunOptions options(int ranks, int threads) {
    RunOptions options{.ranks = ranks, .layout = LayoutKind::zigzag};
    options.threads = threads;
    options.tile_queries = cpu::kTileQueries;
    options.tile_keys = cpu::kTileKeys;
    return options;
  }

 private:
  const Problem problem_;
  const std::vector<double> q_, k_, v_;
};

/// Measured bytes over the formula's, of the rank where this is most. The formula: Q + O + state +
/// the chunks of K and V that a rank holds, its own included.
double memory_ratio(const RingProblem& problem, int ranks) {
  constexpr std::int64_t kBytes = 4;
  const RunResult result = problem.run(ranks, 1);
  const Shape& s = problem.problem().shape;
  const Layout layout = make_layout(RingProblem::options(ranks, 1), s.q_tokens, {});
  const int slots = std::min(RingProblem::options(ranks, 1).slots, ranks - 1);
  double worst = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t tokens = layout.positions(rank).size();
    const std::int64_t rows = s.q_heads * tokens;
    const std::int64_t q = rows * s.head_dim * kBytes, o = rows * s.v_dim * kBytes;
    const std::int64_t state = rows * (s.v_dim + 2) * kBytes;
    const std::int64_t chunk = s.kv_heads * tokens * (s.head_dim + s.v_dim) * kBytes;
    const std::int64_t lse = rows * kBytes;
    const std::int64_t held =
        q + chunk + o + lse + result.ranks[static_cast<std::size_t>(rank)].peak_bytes;
    const std::int64_t formula = q + o + state + (slots + 1) * chunk;
    worst = std::max(worst, static_cast<double>(held) / static_cast<double>(formula));
  }
  return worst;
}

}  // namespace

Findings measure_ring(const Plan& plan) {
  check_cores(2);
  const RingProblem problem(2, plan.quick ? 4096 : 8192);
  const Shape& shape = problem.problem().shape;
  AttentionWork<float> kernel({.heads = shape.q_heads,
                               .queries = shape.q_tokens,
                               .tokens = shape.q_tokens,
                               .head_dim = shape.head_dim,
                               .mask = "causal",
                               .threads = 2});
  const auto run = [&](int ranks, int threads) { return problem.run(ranks, threads).seconds; };
  const std::vector<Timing> timings =
      time_in_turn({{"one rank, two threads", {}, [&] { return run(1, 2); }},
                    {"C7.p2", {}, [&] { return run(2, 1); }},
                    {"C7.p4", {}, [&] { return run(4, 1); }},
                    {"kernel, two threads", [&] { kernel.run_kernel(); }}},
                   plan.timing());
  const auto gigaflops = [&](const Timing& timing) {
    return inverse(timing.seconds, kernel.forward_flops() * 1e-9);
  };
  Findings findings;
  for (const std::size_t i : {1u, 2u}) {
    const std::string& id = timings[i].name;
    findings.reached(id, inverse(timings[i].ratio, 1));
    findings.beside(id, "ring, Gflop/s", gigaflops(timings[i]));
    findings.beside(id, "kernel alone, Gflop/s", gigaflops(timings[3]));
  }
  return findings;
}

Findings measure_scaling(const Plan& plan) {
  check_cores(2);
  const auto work = [&](int threads) {
    const std::int64_t tokens = plan.quick ? 1024 : 2048;
    return std::make_shared<AttentionWork<float>>(AttentionSizes{.heads = 8,
                                                                 .queries = tokens,
                                                                 .tokens = tokens,
                                                                 .head_dim = 64,
                                                                 .mask = "causal",
                                                                 .threads = threads});
  };
  const auto one = work(1), two = work(2);
  Findings findings;
  const std::vector<Timing> forward =
      time_in_turn({{"two", [&] { two->run_kernel(); }}, {"one", [&] { one->run_kernel(); }}},
                   plan.timing(0, 2));
  findings.reached("C9.forward", forward[1].ratio);
  if (!plan.wants("C9.backward")) return findings;
  const std::vector<Timing> backward = time_in_turn(
      {{"two", [&] { two->run_backward_kernel(); }}, {"one", [&] { one->run_backward_kernel(); }}},
      plan.timing(1, 2));
  findings.reached("C9.backward", backward[1].ratio);
  return findings;
}

Findings measure_memory(const Plan& plan) {
  const RingProblem problem(2, plan.quick ? 2048 : 4096);
  Findings findings;
  for (const int ranks : {2, 4}) {
    const double ratio = memory_ratio(problem, ranks);
    findings.reached(fmt::format("C10.p{}", ranks), {ratio, ratio, ratio});
    plan.report(ranks / 4.0);
  }
  return findings;
}

}  // namespace ringlab::bench
