// C5: the fp64 reference, against the peak of fp64 multiply-adds and against naive loops.
#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/cpu/naive.h"
#include "optimized/bench/cpu/peak_loop.h"
#include "optimized/bench/measure/families.h"
#include "reference/attention/exact.h"

namespace ringlab::bench {

Findings measure_reference(const Plan& plan) {
  const std::int64_t tokens = plan.quick ? 1024 : 2048;
  const Shape shape{.batch = 1,
                    .q_heads = 1,
                    .kv_heads = 1,
                    .q_tokens = tokens,
                    .kv_tokens = tokens,
                    .head_dim = 64,
                    .v_dim = 64};
  const Problem problem{.shape = shape,
                        .dtype = DType::f32,
                        .scale = 0.125,
                        .mask = parse_mask("causal").bind(tokens, tokens)};
  const auto q = normal_values<double>(shape.q().size(), 1);
  const auto k = normal_values<double>(shape.k().size(), 2);
  const auto v = normal_values<double>(shape.v().size(), 3);
  const AttentionInput input{.problem = problem,
                             .q = dense_view(q.data(), shape.q()),
                             .k = dense_view(k.data(), shape.k()),
                             .v = dense_view(v.data(), shape.v())};
  const double flops = 4.0 * static_cast<double>(problem.mask.count_all() * shape.head_dim);
  std::vector<Contender> contenders = {on_one_thread("reference", [&] { fast_forward(input); }),
                                       on_one_thread("naive", [&] { naive_attention(input); })};
  const std::string no_peak = PeakLoop::missing(PeakOperation::f64_fma);
  double peak_flops = 0;
  if (no_peak.empty()) {
    const PeakLoop peak(PeakOperation::f64_fma);
    peak_flops = peak.run(flops);
    contenders.push_back(on_one_thread("peak", [peak, peak_flops] { peak.run(peak_flops); }));
  }
  const std::vector<Timing> timings = time_in_turn(contenders, plan.timing());
  Findings findings;
  findings.reached("C5.naive", timings[1].ratio);
  if (!no_peak.empty()) {
    findings.skip("C5.peak", no_peak);
  } else {
    findings.reached("C5.peak", scaled(timings[2].ratio, flops / peak_flops));
    findings.beside("C5.peak", "peak, Gflop/s", inverse(timings[2].seconds, peak_flops * 1e-9));
  }
  findings.beside("C5.peak", "Gflop/s", inverse(timings[0].seconds, flops * 1e-9));
  return findings;
}

}  // namespace ringlab::bench
