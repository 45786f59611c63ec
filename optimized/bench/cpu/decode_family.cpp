// C11: one query against many keys, which is bound by how fast K and V are read.
#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/cpu/roofline.h"
#include "optimized/bench/measure/families.h"

namespace ringlab::bench {
namespace {

/// Times decoding beside reading as many bytes from a buffer of the same size.
void measure_heads(const Goal& goal, const TimingOptions& options, Findings& findings) {
  const GoalCase& of = goal.of;
  check_cores(of.threads);
  AttentionWork<float> work({.heads = of.heads,
                             .queries = of.queries,
                             .tokens = of.tokens,
                             .head_dim = of.head_dim,
                             .threads = of.threads});
  const ReadBuffer buffer(2 * of.heads * of.tokens * of.head_dim *
                          static_cast<std::int64_t>(sizeof(float)));
  const std::vector<Timing> timings =
      time_in_turn({Contender{"decoding", [&] { work.run_kernel(); }},
                    Contender{"reading", [&] { buffer.read(of.threads); }}},
                   options);
  const double gigabytes = static_cast<double>(buffer.bytes()) * 1e-9;
  findings.reached(goal.id, timings[1].ratio);
  findings.beside(goal.id, "GB/s", inverse(timings[0].seconds, gigabytes));
  findings.beside(goal.id, "reading, GB/s", inverse(timings[1].seconds, gigabytes));
}

}  // namespace

Findings measure_decoding(const Plan& plan) { return plan.for_each(measure_heads); }

}  // namespace ringlab::bench
