// C1, C2, C4 and C6: shares of what the processor can do at most, on one thread.
#include <fmt/format.h>

#include <memory>

#include "cli/bench/cpu/attention_work.h"
#include "cli/bench/cpu/peak_loop.h"
#include "cli/bench/measure/families.h"

namespace ringlab::bench {
namespace {

Findings findings_of(const Plan& plan, PeakOperation operation, const std::vector<Counted>& all) {
  const std::vector<PeakShare> shares = shares_of_peak(operation, all, plan.timing());
  Findings findings;
  for (std::size_t i = 0; i < all.size(); ++i) {
    findings.reached(all[i].id, shares[i].share);
    findings.beside(all[i].id, "Gflop/s", shares[i].gflops_per_s);
    findings.beside(all[i].id, "peak, Gflop/s", shares[i].peak_gflops_per_s);
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
  return findings_of(plan, PeakOperation::f32_fma, all);
}

Findings measure_bf16(const Plan& plan) {
  std::vector<Counted> all;
  for (const std::int64_t head_dim : {128, 64}) {
    const std::string id = fmt::format("C4.d{}", head_dim);
    if (!plan.wants(id)) continue;
    const auto work = one_head<BFloat16>(plan.quick ? 2048 : 4096, head_dim, "full");
    all.push_back({id, work->forward_flops(), [work] { work->run_kernel(); }});
  }
  return findings_of(plan, PeakOperation::bf16_dot, all);
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
  return findings_of(plan, PeakOperation::f32_fma, all);
}

}  // namespace ringlab::bench
