// C1, C2, C4 and C6: shares of what the processor can do at most, on one thread.
#include <fmt/format.h>

#include <memory>

#include "cli/bench/attention_work.h"
#include "cli/bench/families.h"
#include "cli/bench/peak_loop.h"

namespace ringlab::bench {
namespace {

/// Some work of which the operations are known.
struct Counted {
  std::string id;
  double flops;
  std::function<void()> work;
};

/// Each one's share of the peak, taken in turn with it.
Findings shares_of_peak(const Plan& plan, Operation operation, const std::vector<Counted>& all) {
  const PeakLoop peak(operation);
  const double peak_flops = peak.run(all.front().flops / 2);
  std::vector<Contender> contenders = {on_one_thread("peak", [&] { peak.run(peak_flops); })};
  for (const Counted& one : all) contenders.push_back(on_one_thread(one.id, one.work));
  const std::vector<Timing> timings = time_in_turn(contenders, plan.timing());
  Findings findings;
  for (std::size_t i = 0; i < all.size(); ++i) {
    findings.reached(all[i].id, inverse(timings[i + 1].ratio, all[i].flops / peak_flops));
    findings.beside(all[i].id, "Gflop/s", inverse(timings[i + 1].seconds, all[i].flops * 1e-9));
    findings.beside(all[i].id, "peak, Gflop/s", inverse(timings[0].seconds, peak_flops * 1e-9));
  }
  return findings;
}

template <class Element>
std::shared_ptr<AttentionWork<Element>> one_head(std::int64_t tokens, std::int64_t head_dim,
                                                 const std::string& mask) {
  return std::make_shared<AttentionWork<Element>>(
      AttentionSizes{.queries = tokens, .tokens = tokens, .head_dim = head_dim, .mask = mask});
}

}  // namespace

Findings measure_forward(const Plan& plan) {
  std::vector<Counted> all;
  for (const std::int64_t head_dim : {128, 64}) {
    for (const char* mask : {"full", "causal"}) {
      const std::string id = fmt::format("{}.{}", head_dim == 128 ? "C1" : "C2", mask);
      if (!plan.wants(id)) continue;
      const auto work = one_head<float>(plan.quick ? 2048 : 4096, head_dim, mask);
      all.push_back({id, work->forward_flops(), [work] { work->run_kernel(); }});
    }
  }
  return shares_of_peak(plan, Operation::f32_fma, all);
}

Findings measure_bf16(const Plan& plan) {
  std::vector<Counted> all;
  for (const std::int64_t head_dim : {128, 64}) {
    const std::string id = fmt::format("C4.d{}", head_dim);
    if (!plan.wants(id)) continue;
    const auto work = one_head<BFloat16>(plan.quick ? 2048 : 4096, head_dim, "full");
    all.push_back({id, work->forward_flops(), [work] { work->run_kernel(); }});
  }
  return shares_of_peak(plan, Operation::bf16_dot, all);
}

Findings measure_backward(const Plan& plan) {
  std::vector<Counted> all;
  for (const std::int64_t head_dim : {128, 64}) {
    for (const char* mask : {"full", "causal"}) {
      const std::string id = fmt::format("C6.d{}.{}", head_dim, mask);
      if (!plan.wants(id)) continue;
      const auto work = one_head<float>(plan.quick ? 2048 : 4096, head_dim, mask);
      all.push_back({id, work->backward_flops(), [work] { work->run_backward_kernel(); }});
    }
  }
  return shares_of_peak(plan, Operation::f32_fma, all);
}

}  // namespace ringlab::bench
