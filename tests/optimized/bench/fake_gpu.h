// A device of which everything is known, so that goals can be worked out by hand.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "optimized/bench/gpu/gpu_families.h"
#include "reference/core/error.h"

namespace ringlab::bench {

struct FakeGpu : Gpu {
  double attention_flops_per_s = 500e12;
  double product_flops_per_s = 800e12;
  double ring_overhead = 0;   ///< of a ring's time, for each rank beyond the first
  double ring_issuing_s = 0;  ///< by the host, for each rank
  double copy_bytes_per_s = 50e9;
  double slowdown_under_copies = 1;
  double step_overhead_s = 0;
  bool has_product = true;
  bool has_nccl = true;
  std::string wrong = {};                            ///< what is wrong with attention
  double cudnn_flops_per_s = 0;                      ///< 0: there is no cuDNN
  std::int64_t most_tokens = std::int64_t{1} << 40;  ///< longer ones are out of memory
  std::vector<HopCase> hops_asked = {};

  GpuFacts facts() override { return {.name = "fake", .driver = "1.0", .runtime = "1.0"}; }
  double clock_hz() override { return 1e9; }
  GpuWork matrix_product(std::int64_t n) override {
    if (!has_product) fail("a library", "none");
    return {"fake", [s = matrix_flops(n) / product_flops_per_s] { return s; }};
  }
  GpuWork attention(const GpuCase& one) override {
    if (one.tokens > most_tokens) fail("memory", "none");
    return {"fake kernel", [s = one.flops() / attention_flops_per_s] { return s; },
            [this] { return wrong; }};
  }
  GpuWork cudnn_attention(const GpuCase& one) override {
    if (cudnn_flops_per_s == 0) fail("cuDNN", "none");
    return {"fake cuDNN", [s = one.flops() / cudnn_flops_per_s] { return s; }};
  }
  GpuWork ring(const GpuCase& one, int ranks, RingClock clock) override {
    if (one.tokens > most_tokens) fail("memory", "none");
    const double factor = 1 + ring_overhead * (ranks - 1);
    const double issuing_s = clock == RingClock::host ? ring_issuing_s * ranks : 0;
    return {"fake kernel",
            [s = issuing_s + factor * one.flops() / attention_flops_per_s] { return s; }};
  }
  GpuWork hops(const HopCase& one) override {
    if (one.from == HopFrom::nccl && !has_nccl) fail("NCCL", "none");
    hops_asked.push_back(one);
    return {"fake kernel", [s = hop_seconds(one)] { return s; }};
  }
  std::vector<GpuVersion> versions(const GpuCase& one) override {
    if (one.tokens > most_tokens) fail("memory", "none");
    const auto version = [&](const char* name, double share, bool is_step) {
      return GpuVersion{name,
                        "what",
                        is_step,
                        {name, [s = one.flops() / (share * attention_flops_per_s)] { return s; },
                         [this, share] { return share == 0.8 ? wrong : ""; }}};
    };
    return {version("half", 0.5, true), version("aside", 0.8, false), version("whole", 1, true)};
  }

 private:
  [[noreturn]] static void fail(const std::string& expected, const std::string& actual) {
    throw_environment_error({.where = "fake", .expected = expected, .actual = actual});
  }
  double hop_seconds(const HopCase& one) const {
    const double kernel = one.attention.flops() / attention_flops_per_s;
    const double copies = one.copies * static_cast<double>(one.bytes) / copy_bytes_per_s;
    if (one.part == HopPart::kernel) return one.steps * kernel;
    if (one.part == HopPart::copies) return one.steps * copies;
    if (one.part == HopPart::kernel_of_both) return one.steps * kernel * slowdown_under_copies;
    return one.steps * (std::max(kernel, copies) + step_overhead_s);
  }
};

/// No Python: peers are missing.
inline Plan plan_of(const std::string& goals) {
  return {.rounds = 3,
          .quick = true,
          .goals = choose_goals(goals, gpu_goals()),
          .torch_python = "/no/such/python"};
}

inline std::vector<GoalOutcome> measure_on(FakeGpu& gpu, const std::string& goals) {
  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  return measure(
      plan_of(goals), [](double, const std::string&) {}, gpu_families(bench));
}

inline double beside(const GoalOutcome& outcome, const std::string& name) {
  for (const auto& [found, value] : outcome.beside) {
    if (found == name) return value.median;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace ringlab::bench
