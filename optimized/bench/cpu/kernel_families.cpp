// C1, C2, C4 and C6: shares of what the processor can do at most, on one thread.
#include <memory>

#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/cpu/peak_loop.h"
#include "optimized/bench/measure/families.h"
#include "optimized/cpu/vectors.h"

namespace ringlab::bench {
namespace {

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

PeakOperation operation_of(const Goal& goal) {
  if (family_of(goal) != "C4") return PeakOperation::f32_fma;
  return goal.id.starts_with("C4.amx") ? PeakOperation::bf16_matrix : PeakOperation::bf16_dot;
}

/// One head of the goal's problem.
template <class Element>
Counted counted(const Goal& goal, std::int64_t tokens) {
  const auto work = std::make_shared<AttentionWork<Element>>(AttentionSizes{
      .queries = tokens, .tokens = tokens, .head_dim = goal.of.head_dim, .mask = goal.of.mask});
  if (goal.of.pass == Pass::backward) {
    return {goal.id, work->backward_flops(), [work] { work->run_backward_kernel(); }};
  }
  return {goal.id, work->forward_flops(), [work] { work->run_kernel(); }};
}

/// The goals that are shares of this operation's peak, in turn with it.
void add_shares(const Plan& plan, PeakOperation operation, Findings& findings) {
  const std::string reason = PeakLoop::missing(operation);
  std::vector<Counted> all;
  for (const Goal& goal : plan.goals) {
    if (operation_of(goal) != operation) continue;
    if (!reason.empty()) {
      findings.skip(goal.id, reason);
      continue;
    }
    const std::int64_t tokens = plan.quick ? 2048 : 4096;
    all.push_back(operation == PeakOperation::f32_fma ? counted<float>(goal, tokens)
                                                      : counted<BFloat16>(goal, tokens));
  }
  if (all.empty()) return;
  const std::vector<PeakShare> shares = shares_of_peak(operation, all, plan.timing());
  for (std::size_t i = 0; i < all.size(); ++i) {
    findings.reached(all[i].id, shares[i].share);
    findings.beside(all[i].id, "Gflop/s", shares[i].gflops_per_s);
    findings.beside(all[i].id, "peak, Gflop/s", shares[i].peak_gflops_per_s);
  }
}

}  // namespace

Findings measure_shares(const Plan& plan) {
  Findings findings;
  add_shares(plan, PeakOperation::f32_fma, findings);
  add_shares(plan, PeakOperation::bf16_matrix, findings);
  // Dot products of pairs are measured, too, on vectors without matrix products.
  const bool matrices = operation_for_bf16() == PeakOperation::bf16_matrix;
  const OnVectors pairs(matrices ? "avx512_bf16" : cpu::vectors_in_use());
  add_shares(plan, PeakOperation::bf16_dot, findings);
  return findings;
}

}  // namespace ringlab::bench
