// C11: one query against many keys, which is bound by how fast K and V are read.
#include <fmt/format.h>

#include "cli/bench/cpu/attention_work.h"
#include "cli/bench/cpu/roofline.h"
#include "cli/bench/cpu/torch_cases.h"
#include "cli/bench/measure/families.h"

namespace ringlab::bench {
namespace {

constexpr int kThreads = 2;
constexpr std::int64_t kHeadDim = 64;

/// Times decoding beside reading as many bytes from a buffer of the same size.
void measure_heads(std::int64_t heads, const std::string& id, const TimingOptions& options,
                   Findings& findings) {
  AttentionWork<float> work({.heads = heads,
                             .queries = 1,
                             .tokens = kDecodedTokens,
                             .head_dim = kHeadDim,
                             .threads = kThreads});
  const ReadBuffer buffer(2 * heads * kDecodedTokens * kHeadDim *
                          static_cast<std::int64_t>(sizeof(float)));
  const std::vector<Timing> timings =
      time_in_turn({Contender{"decoding", [&] { work.run_kernel(); }},
                    Contender{"reading", [&] { buffer.read(kThreads); }}},
                   options);
  const double gigabytes = static_cast<double>(buffer.bytes()) * 1e-9;
  findings.reached(id, timings[1].ratio);
  findings.beside(id, "GB/s", inverse(timings[0].seconds, gigabytes));
  findings.beside(id, "reading, GB/s", inverse(timings[1].seconds, gigabytes));
}

}  // namespace

Findings measure_decoding(const Plan& plan) {
  Findings findings;
  int part = 0;
  for (const std::int64_t heads : {1, 8}) {
    const std::string id = fmt::format("C11.h{}", heads);
    const TimingOptions options = plan.timing(part++, 2);
    if (!plan.wants(id)) continue;
    plan.find(id, findings, [&] {
      check_cores(kThreads);
      measure_heads(heads, id, options, findings);
    });
  }
  return findings;
}

}  // namespace ringlab::bench
