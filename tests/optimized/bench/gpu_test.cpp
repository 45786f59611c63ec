// Goals of devices: what they are, and what becomes of them on a device that is made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "tests/optimized/bench/fake_gpu.h"

namespace ringlab::bench {
namespace {

TEST(GpuCase, counts_the_pairs_of_the_mask_and_the_products_of_the_pass) {
  const GpuCase full{.tokens = 3, .head_dim = 8, .q_heads = 2, .kv_heads = 1};
  GpuCase causal = full;
  causal.mask = "causal";
  EXPECT_EQ(full.pairs(), 9);
  EXPECT_EQ(causal.pairs(), 6);
  EXPECT_EQ(full.flops(), 4.0 * 2 * 8 * 9);
  causal.pass = Pass::backward;
  EXPECT_EQ(causal.flops(), 2.5 * 4.0 * 2 * 8 * 6);
  EXPECT_EQ(full.kv_bytes(), 2 * 1 * 3 * 8 * 2);
}

TEST(GpuCase, flops_of_the_longest_sequences_do_not_overflow) {
  const GpuCase one{.mask = "causal", .tokens = std::int64_t{1} << 20};
  EXPECT_NEAR(one.flops(), 4.0 * 64 * 128 * 0.5 * 0x1p40, 1e-6 * one.flops());
}

TEST(GpuCase, asks_the_peer_in_one_line) {
  const GpuCase one{.pass = Pass::backward, .mask = "causal", .tokens = 4096, .head_dim = 64};
  EXPECT_EQ(one.request("cudnn"), "backward bf16 causal 64 8 4096 4096 64 cudnn");
  EXPECT_EQ(one.text(), "causal, 4k tokens, head_dim 64");
  EXPECT_EQ(tokens_text(1000), "1000");
}

TEST(GpuGoals, all_nine_families_are_there_with_ids_that_occur_once) {
  std::set<std::string> ids, families;
  for (const Goal& goal : gpu_goals()) {
    EXPECT_TRUE(ids.insert(goal.id).second) << goal.id;
    families.insert(family_of(goal));
    const bool higher = goal.sense == Sense::at_least;
    EXPECT_TRUE(higher ? goal.target >= goal.bound : goal.target <= goal.bound) << goal.id;
    EXPECT_FALSE(goal.what.empty() || goal.unit.empty()) << goal.id;
  }
  EXPECT_EQ(families,
            (std::set<std::string>{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9"}));
  EXPECT_TRUE(ids.count("G1.t16k") && ids.count("G6.share"))
      << "what both compare is measured once";
}

TEST(GpuGoals, every_one_has_a_family_that_measures_it) {
  FakeGpu gpu;
  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  std::set<std::string> measured;
  for (const GoalFamily& family : gpu_families(bench)) {
    measured.insert(family.ids.begin(), family.ids.end());
  }
  for (const Goal& goal : gpu_goals()) EXPECT_TRUE(measured.count(family_of(goal))) << goal.id;
}

TEST(GpuGoals, words_that_name_goals_of_the_other_kind_are_usage_errors) {
  EXPECT_THROW(choose_goals("C1", gpu_goals()), Error);
  EXPECT_THROW(choose_goals("G1"), Error);
  EXPECT_THROW(choose_goals("G1,", gpu_goals()), Error);
}

TEST(GpuRings, are_compared_with_one_shot_of_all_tokens) {
  FakeGpu gpu;
  gpu.ring_overhead = 0.05;
  const std::vector<GoalOutcome> outcomes = measure_on(gpu, "G7");
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_NEAR(outcomes[0].value->median, 1 / 1.05, 1e-12);
  EXPECT_NEAR(outcomes[1].value->median, 1 / 1.15, 1e-12);
  EXPECT_NEAR(outcomes[2].value->median, 1 / 1.35, 1e-12);
  EXPECT_EQ(outcomes[0].verdict(), GoalVerdict::bound);
  EXPECT_EQ(outcomes[2].verdict(), GoalVerdict::missed);
}

TEST(GpuRings, are_judged_by_the_device_with_the_time_of_the_host_beside) {
  FakeGpu gpu;
  gpu.ring_issuing_s = 1e-3;
  for (const GoalOutcome& one : measure_on(gpu, "G7")) {
    EXPECT_NEAR(one.value->median, 1, 1e-12) << "issuing is not the device's";
    const double ranks = std::stod(one.goal.id.substr(one.goal.id.find(".p") + 2));
    EXPECT_NEAR(beside(one, "host, ms"), beside(one, "ms") + ranks, 1e-9);
    EXPECT_NEAR(beside(one, "one shot, host, ms"), beside(one, "ms") + 1, 1e-9);
  }
}

TEST(GpuGoals, what_is_known_is_kept_after_every_one) {
  FakeGpu gpu;
  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  const Plan plan = plan_of("G1,G7,G9");
  std::vector<std::vector<std::string>> kept;
  const std::vector<GoalOutcome> outcomes = measure(
      plan, [](double, const std::string&) {}, gpu_families(bench),
      [&](const std::vector<GoalOutcome>& so_far) {
        kept.emplace_back();
        for (const GoalOutcome& one : so_far) {
          EXPECT_NE(one.reason, "was not measured") << one.goal.id;
          kept.back().push_back(one.goal.id);
        }
      });
  std::vector<std::string> all;
  for (const GoalOutcome& one : outcomes) all.push_back(one.goal.id);
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept.back(), all);
  std::set<std::size_t> sizes;
  for (const auto& ids : kept) {
    sizes.insert(ids.size());
    EXPECT_TRUE(std::ranges::equal(ids, std::span(all).first(ids.size())));
  }
  EXPECT_EQ(sizes.size(), all.size()) << "one goal after another";
}

TEST(GpuHops, go_on_for_longer_than_the_kernel_that_they_slow_down) {
  FakeGpu gpu;
  gpu.slowdown_under_copies = 1.04;
  const std::vector<GoalOutcome> outcomes = measure_on(gpu, "G8");
  ASSERT_EQ(outcomes.size(), 2u);
  for (const GoalOutcome& one : outcomes) {
    EXPECT_NEAR(one.value->median, 1.04, 1e-12);
    EXPECT_EQ(one.verdict(), GoalVerdict::bound);
    EXPECT_NEAR(beside(one, "copies, GB/s"), 50, 1e-9);
  }
  for (const HopCase& one : gpu.hops_asked) {
    if (one.part != HopPart::kernel_of_both) continue;
    const double copies_s = one.copies * static_cast<double>(one.bytes) / gpu.copy_bytes_per_s;
    EXPECT_GT(copies_s, one.attention.flops() / gpu.attention_flops_per_s);
  }
}

TEST(GpuSteps, a_device_that_keeps_to_the_model_has_no_error_whatever_its_overhead) {
  FakeGpu gpu;
  gpu.step_overhead_s = 20e-6;
  for (const GoalOutcome& one : measure_on(gpu, "G9")) {
    EXPECT_NEAR(one.value->median, 0, 1e-9) << one.goal.id;
    EXPECT_NEAR(beside(one, "overhead, ms"), 0.02, 1e-9);
    EXPECT_EQ(one.verdict(), GoalVerdict::target);
  }
}

TEST(GpuSteps, cover_the_crossover_from_copies_to_kernels) {
  FakeGpu gpu;
  const std::vector<GoalOutcome> outcomes = measure_on(gpu, "G9");
  EXPECT_LT(beside(outcomes.front(), "kernel, ms"), beside(outcomes.front(), "copy, ms"));
  EXPECT_GT(beside(outcomes.back(), "kernel, ms"), beside(outcomes.back(), "copy, ms"));
}

/// Kernel and copies do not overlap at all.
struct OneAfterTheOther : FakeGpu {
  GpuWork hops(const HopCase& one) override {
    if (one.part != HopPart::both) return FakeGpu::hops(one);
    HopCase kernel = one, copies = one;
    kernel.part = HopPart::kernel;
    copies.part = HopPart::copies;
    const double s = FakeGpu::hops(kernel).seconds() + FakeGpu::hops(copies).seconds();
    return {"fake kernel", [s] { return s; }};
  }
};

TEST(GpuSteps, a_device_that_does_one_after_the_other_has_missed_at_the_crossover) {
  OneAfterTheOther gpu;
  const std::vector<GoalOutcome> outcomes = measure_on(gpu, "G9");
  EXPECT_TRUE(std::ranges::any_of(
      outcomes, [](const GoalOutcome& one) { return one.verdict() == GoalVerdict::missed; }));
}

TEST(GpuGoals, some_of_them_cost_only_themselves) {
  FakeGpu gpu;
  const std::vector<GoalOutcome> outcomes = measure_on(gpu, "G9.c4k,G7.p4");
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].goal.id, "G7.p4");
  EXPECT_TRUE(outcomes[0].value && outcomes[1].value);
}

}  // namespace
}  // namespace ringlab::bench
