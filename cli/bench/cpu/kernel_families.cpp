// C1, C2, C4 and C6: shares of what the processor can do at most, on one thread.
#include <fmt/format.h>

#include <memory>

#include "cli/bench/cpu/attention_work.h"
#include "cli/bench/cpu/peak_loop.h"
#include "cli/bench/measure/families.h"
#include "optimized/cpu/vectors.h"

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

/// Switches the kernels to other vectors for the lifetime of the object.
class OnVectors {
 public:
  explicit OnVectors(const std::string& name) : before_(cpu::vectors_in_use()) {
    cpu::use_vectors(name);
  }
  ~OnVectors() { cpu::use_vectors(before_); }
  OnVectors(const OnVectors&) = delete;
  OnVectors& operator=(const OnVectors&) = delete;

 private:
  const std::string before_;
};

Findings shares_of_bf16(const Plan& plan, const std::string& family, PeakOperation operation) {
  const std::string reason = PeakLoop::missing(operation);
  Findings findings;
  std::vector<Counted> all;
  for (const std::int64_t head_dim : {128, 64}) {
    const std::string id = fmt::format("{}.d{}", family, head_dim);
    if (!plan.wants(id)) continue;
    if (!reason.empty()) findings.skip(id, reason);
    const auto work = one_head<BFloat16>(plan.quick ? 2048 : 4096, head_dim, "full");
    all.push_back({id, work->forward_flops(), [work] { work->run_kernel(); }});
  }
  return all.empty() || !reason.empty() ? findings : findings_of(plan, operation, all);
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
  Findings findings = shares_of_bf16(plan, "C4.amx", PeakOperation::bf16_matrix);
  // Dot products of pairs are measured, too, on vectors without matrix products.
  const bool matrices = operation_for_bf16() == PeakOperation::bf16_matrix;
  const OnVectors pairs(matrices ? "avx512_bf16" : cpu::vectors_in_use());
  findings.found.merge(shares_of_bf16(plan, "C4", PeakOperation::bf16_dot).found);
  return findings;
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
