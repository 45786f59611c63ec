// Goals of devices: what they are, and what becomes of them on a device that is made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <span>

#include "cli/bench/gpu/gpu_families.h"
#include "cli/bench/gpu/gpu_goals.h"
#include "cli/bench/gpu/gpu_ladder.h"
#include "cli/bench/gpu/gpu_overlap.h"
#include "tests/cli/bench/fake_gpu.h"
#include "tests/temporary_folder.h"

namespace ringlab::bench {
namespace {

/// No Python: peers are missing.
Plan plan_of(const std::string& goals) {
  return {.rounds = 3,
          .quick = true,
          .goals = choose_goals(goals, gpu_goals()),
          .torch_python = "/no/such/python"};
}

std::vector<Outcome> measure_on(FakeGpu& gpu, const std::string& goals) {
  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  return measure(
      plan_of(goals), [](double, const std::string&) {}, gpu_families(bench));
}

double beside(const Outcome& outcome, const std::string& name) {
  for (const auto& [found, value] : outcome.beside) {
    if (found == name) return value.median;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

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
  EXPECT_EQ(one.request("cudnn"), "backward causal 64 8 4096 64 cudnn");
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
  EXPECT_TRUE(ids.count(kLinesCase));
}

TEST(GpuGoals, every_one_has_a_family_that_measures_it) {
  FakeGpu gpu;
  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  std::set<std::string> measured;
  for (const Family& family : gpu_families(bench)) {
    measured.insert(family.ids.begin(), family.ids.end());
  }
  for (const Goal& goal : gpu_goals()) EXPECT_TRUE(measured.count(family_of(goal))) << goal.id;
}

TEST(GpuGoals, words_that_name_goals_of_the_other_kind_are_usage_errors) {
  EXPECT_THROW(choose_goals("C1", gpu_goals()), Error);
  EXPECT_THROW(choose_goals("G1"), Error);
  EXPECT_THROW(choose_goals("G1,", gpu_goals()), Error);
}

TEST(GpuMatches, without_peers_goals_are_skipped_and_throughputs_are_there_all_the_same) {
  FakeGpu gpu;
  for (const Outcome& one : measure_on(gpu, "G1,G2,G3,G4,G5")) {
    EXPECT_EQ(one.verdict(), Verdict::skipped) << one.goal.id;
    EXPECT_NE(one.reason.find("/no/such/python"), std::string::npos) << one.reason;
    EXPECT_NEAR(beside(one, "TFLOP/s"), 500, 1e-9) << one.goal.id;
    EXPECT_NEAR(beside(one, "share of matrix peak"), 500.0 / 800, 1e-12) << one.goal.id;
    EXPECT_NEAR(beside(one, "matrix peak, TFLOP/s"), 800, 1e-9) << one.goal.id;
    EXPECT_EQ(one.subject, "fake kernel");
  }
}

/// A Python with PyTorch that answers every request so, without running what it is to run.
std::vector<Outcome> measure_against(const std::string& answer, FakeGpu& gpu,
                                     const std::string& goals) {
  const TemporaryFolder folder;
  const std::filesystem::path python = folder / "python";
  std::ofstream(python) << "#!/bin/sh\necho ready Fake\nwhile read line; do sleep 0.02; echo "
                        << answer << "; done\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  Plan plan = plan_of(goals);
  plan.torch_python = python;
  return measure(
      plan, [](double, const std::string&) {}, gpu_families(bench));
}

TEST(GpuMatches, a_peer_that_answers_is_compared_with_ours_on_the_same_problem) {
  FakeGpu gpu;
  const auto outcomes = measure_against("0.01", gpu, "G1.t4k,G6.share");
  ASSERT_EQ(outcomes.size(), 2u);
  GpuCase one{.tokens = 4096, .q_heads = 16, .kv_heads = 2};
  ASSERT_TRUE(outcomes[0].value) << outcomes[0].reason;
  EXPECT_NEAR(outcomes[0].value->median, 0.01 * 500e12 / one.flops(), 1e-9);
  EXPECT_NEAR(beside(outcomes[0], "peer, TFLOP/s"), one.flops() / 0.01 * 1e-12, 1e-9);
  one.tokens = 16384;
  ASSERT_TRUE(outcomes[1].value) << outcomes[1].reason;
  EXPECT_NEAR(outcomes[1].value->median, 0.01 * 500e12 / one.flops(), 1e-9);
}

TEST(GpuMatches, wrong_results_have_no_figures) {
  FakeGpu gpu;
  gpu.wrong = "o at (0, 0, 0, 0)";
  const auto outcomes = measure_against("0.01", gpu, "G1.t4k");
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].verdict(), Verdict::skipped);
  EXPECT_EQ(outcomes[0].reason, "wrong results: o at (0, 0, 0, 0)");
  EXPECT_TRUE(outcomes[0].beside.empty());

  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  const Ladder ladder = measure_ladder(bench, {}, {.rounds = 3});
  for (const LadderRung& rung : ladder.rungs) {
    EXPECT_EQ(rung.failure.empty(), rung.name != "aside") << rung.name;
  }
}

/// cuDNN itself comes before PyTorch's, which has to be asked for other back ends.
TEST(GpuMatches, cudnn_is_asked_directly_where_it_is_there) {
  FakeGpu gpu;
  gpu.cudnn_flops_per_s = 400e12;
  for (const Outcome& one : measure_on(gpu, "G1,G2,G4,G5")) {
    ASSERT_TRUE(one.value) << one.goal.id << ": " << one.reason;
    EXPECT_NEAR(one.value->median, 500.0 / 400, 1e-9) << one.goal.id;
    EXPECT_NEAR(beside(one, "peer, TFLOP/s"), 400, 1e-9) << one.goal.id;
  }
  for (const Outcome& one : measure_on(gpu, "G3")) {
    EXPECT_EQ(one.verdict(), Verdict::skipped) << one.goal.id;
    EXPECT_NE(one.reason.find("/no/such/python"), std::string::npos) << one.reason;
    EXPECT_EQ(one.reason.find("cuDNN"), std::string::npos) << one.reason;
  }
}

TEST(GpuMatches, where_cudnn_can_be_had_in_no_way_both_reasons_are_named) {
  FakeGpu gpu;
  for (const Outcome& one : measure_on(gpu, "G1,G5")) {
    EXPECT_EQ(one.verdict(), Verdict::skipped) << one.goal.id;
    EXPECT_NE(one.reason.find("expected cuDNN"), std::string::npos) << one.reason;
    EXPECT_NE(one.reason.find("/no/such/python"), std::string::npos) << one.reason;
  }
  const auto outcomes = measure_against("cannot do it", gpu, "G5");
  EXPECT_NE(outcomes[0].reason.find("expected cuDNN"), std::string::npos) << outcomes[0].reason;
  EXPECT_NE(outcomes[0].reason.find("cannot do it"), std::string::npos) << outcomes[0].reason;
}

TEST(GpuMatches, a_peer_that_cannot_says_why_and_ours_is_measured) {
  FakeGpu gpu;
  const auto outcomes = measure_against("cannot do it", gpu, "G2.t8k");
  EXPECT_EQ(outcomes[0].verdict(), Verdict::skipped);
  EXPECT_NE(outcomes[0].reason.find("cannot do it"), std::string::npos) << outcomes[0].reason;
  EXPECT_NEAR(beside(outcomes[0], "TFLOP/s"), 500, 1e-9);
}

TEST(GpuMatches, a_peer_faster_than_matrix_products_is_not_believed) {
  FakeGpu gpu;
  const auto outcomes = measure_against("0.000001", gpu, "G1.t32k");
  EXPECT_EQ(outcomes[0].verdict(), Verdict::skipped) << outcomes[0].value->median;
}

TEST(GpuMatches, without_a_matrix_product_throughputs_have_no_share) {
  FakeGpu gpu;
  gpu.has_product = false;
  for (const Outcome& one : measure_on(gpu, "G2")) {
    EXPECT_NEAR(beside(one, "TFLOP/s"), 500, 1e-9) << one.goal.id;
    EXPECT_TRUE(std::isnan(beside(one, "share of matrix peak"))) << one.goal.id;
  }
}

TEST(GpuMatches, a_case_that_is_out_of_memory_costs_its_own_goal_only) {
  FakeGpu gpu;
  gpu.most_tokens = 16384;
  const std::vector<Outcome> outcomes = measure_on(gpu, "G1");
  EXPECT_NE(outcomes.back().reason.find("memory"), std::string::npos);
  EXPECT_TRUE(outcomes.back().beside.empty());
  EXPECT_FALSE(outcomes.front().beside.empty());
}

TEST(GpuMatches, the_file_of_the_kernel_is_counted) {
  FakeGpu gpu;
  const std::vector<Outcome> outcomes = measure_on(gpu, "G6");
  ASSERT_EQ(outcomes.size(), 2u);
  ASSERT_TRUE(outcomes[0].value);
  EXPECT_GT(outcomes[0].value->median, 100);
  EXPECT_NEAR(beside(outcomes[1], "TFLOP/s"), 500, 1e-9);
}

TEST(GpuRings, are_compared_with_one_shot_of_all_tokens) {
  FakeGpu gpu;
  gpu.ring_overhead = 0.05;
  const std::vector<Outcome> outcomes = measure_on(gpu, "G7");
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_NEAR(outcomes[0].value->median, 1 / 1.05, 1e-12);
  EXPECT_NEAR(outcomes[1].value->median, 1 / 1.15, 1e-12);
  EXPECT_NEAR(outcomes[2].value->median, 1 / 1.35, 1e-12);
  EXPECT_EQ(outcomes[0].verdict(), Verdict::bound);
  EXPECT_EQ(outcomes[2].verdict(), Verdict::missed);
}

TEST(GpuRings, are_judged_by_the_device_with_the_time_of_the_host_beside) {
  FakeGpu gpu;
  gpu.ring_issuing_s = 1e-3;
  for (const Outcome& one : measure_on(gpu, "G7")) {
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
  const std::vector<Outcome> outcomes = measure(
      plan, [](double, const std::string&) {}, gpu_families(bench),
      [&](const std::vector<Outcome>& so_far) {
        kept.emplace_back();
        for (const Outcome& one : so_far) {
          EXPECT_NE(one.reason, "was not measured") << one.goal.id;
          kept.back().push_back(one.goal.id);
        }
      });
  std::vector<std::string> all;
  for (const Outcome& one : outcomes) all.push_back(one.goal.id);
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
  const std::vector<Outcome> outcomes = measure_on(gpu, "G8");
  ASSERT_EQ(outcomes.size(), 2u);
  for (const Outcome& one : outcomes) {
    EXPECT_NEAR(one.value->median, 1.04, 1e-12);
    EXPECT_EQ(one.verdict(), Verdict::bound);
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
  for (const Outcome& one : measure_on(gpu, "G9")) {
    EXPECT_NEAR(one.value->median, 0, 1e-9) << one.goal.id;
    EXPECT_NEAR(beside(one, "overhead, ms"), 0.02, 1e-9);
    EXPECT_EQ(one.verdict(), Verdict::target);
  }
}

TEST(GpuSteps, cover_the_crossover_from_copies_to_kernels) {
  FakeGpu gpu;
  const std::vector<Outcome> outcomes = measure_on(gpu, "G9");
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
  const std::vector<Outcome> outcomes = measure_on(gpu, "G9");
  EXPECT_TRUE(std::ranges::any_of(
      outcomes, [](const Outcome& one) { return one.verdict() == Verdict::missed; }));
}

TEST(GpuGoals, some_of_them_cost_only_themselves) {
  FakeGpu gpu;
  const std::vector<Outcome> outcomes = measure_on(gpu, "G9.c4k,G7.p4");
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].goal.id, "G7.p4");
  EXPECT_TRUE(outcomes[0].value && outcomes[1].value);
}

TEST(Ladder, has_every_width_and_mask) {
  std::set<std::string> texts;
  for (const GpuCase& one : ladder_cases(false)) texts.insert(one.text());
  EXPECT_EQ(texts.size(), 4u);
  EXPECT_TRUE(texts.contains("causal, 16k tokens, head_dim 64"));
}

TEST(Ladder, compares_every_version_with_the_last_step) {
  FakeGpu gpu;
  const GpuCase one = ladder_cases(true)[0];
  const Ladder ladder = measure_ladder({.gpu = gpu, .warm_up_s = 0}, one, {.rounds = 3});
  ASSERT_EQ(ladder.rungs.size(), 3u);
  EXPECT_EQ(ladder.rungs[0].name, "half");
  EXPECT_NEAR(ladder.rungs[0].speed.median, 0.5, 1e-12);
  EXPECT_NEAR(ladder.rungs[0].flops_per_s.median, 250e12, 1);
  EXPECT_EQ(ladder.rungs[1].name, "whole") << "steps come first";
  EXPECT_NEAR(ladder.rungs[1].speed.median, 1, 1e-12);
  EXPECT_EQ(ladder.rungs[2].name, "aside");
  EXPECT_FALSE(ladder.rungs[2].is_step);
  EXPECT_NEAR(ladder.rungs[2].speed.median, 0.8, 1e-12);
}

TEST(Ladder, what_the_device_cannot_do_is_an_environment_error) {
  FakeGpu gpu;
  gpu.most_tokens = 1;
  try {
    measure_ladder({.gpu = gpu, .warm_up_s = 0}, ladder_cases(true)[0], {.rounds = 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
  }
}

TEST(Overlap, has_copy_engines_and_nccl_with_multiprocessors_left_free) {
  std::set<std::pair<std::string, std::string>> options;
  for (const OverlapOption& one : overlap_options())
    options.insert({copies_text(one), text_of(one.grid)});
  EXPECT_EQ(options.size(), 11u);
  EXPECT_TRUE(options.contains({"NCCL, to itself, 2 blocks", "stays, 8 left free"}));
  EXPECT_TRUE(options.contains({"NCCL, to itself", "stays, 16 left free"}));
}

TEST(Overlap, is_the_speed_of_kernels_and_copies_beside_each_other) {
  FakeGpu gpu;
  gpu.slowdown_under_copies = 1.25;
  const GpuCase attention{.tokens = 1024};
  const Overlap found = measure_overlap(
      {.gpu = gpu, .warm_up_s = 0}, {HopFrom::nccl, {.left_free = 8}, 4}, attention, {.rounds = 3});
  EXPECT_EQ(found.failure, "");
  EXPECT_NEAR(found.kernel_alone.median, 1, 1e-12);
  EXPECT_NEAR(found.kernel_under_copies.median, 0.8, 1e-12);
  EXPECT_NEAR(found.copies_alone_bytes_per_s.median, 50e9, 1);
  EXPECT_NEAR(found.copies_under_kernel_bytes_per_s.median, 50e9, 1);
  EXPECT_TRUE(std::ranges::any_of(gpu.hops_asked, [](const HopCase& one) {
    return one.grid.left_free == 8 && one.from == HopFrom::nccl && one.nccl_blocks == 4 &&
           one.part == HopPart::kernel_of_both;
  }));
}

TEST(Overlap, what_cannot_be_had_says_why) {
  FakeGpu gpu;
  gpu.has_nccl = false;
  const Overlap found =
      measure_overlap({.gpu = gpu, .warm_up_s = 0}, {HopFrom::nccl, {.stays = false}},
                      {.tokens = 1024}, {.rounds = 3});
  EXPECT_NE(found.failure.find("NCCL"), std::string::npos) << found.failure;
}

}  // namespace
}  // namespace ringlab::bench
