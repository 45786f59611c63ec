// A machine's file of what a device is measured to do.
#include "optimized/bench/gpu/gpu_machine.h"

#include <gtest/gtest.h>

#include "optimized/bench/device_machine.h"
#include "reference/model/machine_file.h"
#include "tests/optimized/bench/fake_gpu.h"

namespace ringlab::bench {
namespace {

const TimingOptions kOnce{.rounds = 3};

std::vector<PassSpeeds> speeds_on(FakeGpu& gpu) {
  std::vector<PassSpeeds> speeds;
  for (const GpuCase& one : speed_cases(true)) {
    speeds.push_back(measure_passes({.gpu = gpu, .warm_up_s = 0}, one, kOnce));
  }
  return speeds;
}

model::Machine machine_on(FakeGpu& gpu, const std::string& device) {
  const GpuFacts facts{
      .name = device, .driver = "1.0", .runtime = "1.0", .memory_bytes = 96'000'000'000};
  const std::string text = device_machine("mine", facts, speeds_on(gpu),
                                          measure_figures({.gpu = gpu, .warm_up_s = 0}, kOnce));
  return model::machine_of_json(text, "text");
}

TEST(GpuMachine, has_every_width_mask_and_length_that_was_measured) {
  FakeGpu gpu;
  gpu.attention_flops_per_s = 400e12;
  gpu.slowdown_under_copies = 1.25;
  const model::Machine machine = machine_on(gpu, "Some Device");
  EXPECT_EQ(machine.name, "mine");
  EXPECT_EQ(machine.memory_bytes, 96e9);
  EXPECT_EQ(machine.attention.size(), 2u);
  ASSERT_TRUE(machine.expected);
  ASSERT_EQ(machine.expected->attention.size(), speed_cases(true).size());
  for (const model::KernelSpeed& speed : machine.expected->attention) {
    EXPECT_EQ(speed.forward_flops, 400e12);
    EXPECT_EQ(speed.backward_flops, 400e12);
  }
  EXPECT_EQ(machine.product_flops, 800e12);
  EXPECT_EQ(machine.memory_bytes_per_s, 2 * 50e9);
  EXPECT_NEAR(machine.expected->transfer_share, 0.2, 1e-3);
}

// It knows its own device only: others are reached by way of the host.
TEST(GpuMachine, of_an_unknown_device_is_one_device) {
  FakeGpu gpu;
  gpu.has_product = false;
  const model::Machine machine = machine_on(gpu, "NVIDIA GeForce RTX 4090 Laptop GPU");
  EXPECT_EQ(machine.node_ranks, 1);
  EXPECT_EQ(machine.product_flops, 0);
  EXPECT_EQ(machine.inside.bytes_per_s, 50e9);
}

TEST(GpuMachine, named_after_a_known_one_has_its_links_and_its_other_types) {
  FakeGpu gpu;
  const model::Machine& known = model::find_machine("h100");
  const model::Machine machine = machine_on(gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(machine.node_ranks, known.node_ranks);
  EXPECT_EQ(machine.inside.bytes_per_s, known.inside.bytes_per_s);
  EXPECT_EQ(machine.outside.bytes_per_s, known.outside.bytes_per_s);
  ASSERT_TRUE(machine.expected);
  EXPECT_EQ(machine.expected->link_share, known.expected->link_share);
  EXPECT_EQ(machine.expected->product_share, 1) << "products were measured";
  for (const model::KernelSpeed& speed : machine.attention) {
    if (speed.dtype == DType::bf16) {
      EXPECT_EQ(speed.forward_flops, 500e12);
    }
  }
  EXPECT_EQ(std::ranges::count(machine.attention, DType::f64, &model::KernelSpeed::dtype), 1);
}

TEST(GpuMachine, leaves_out_cases_that_are_wrong_or_do_not_fit) {
  FakeGpu gpu;
  gpu.most_tokens = 4096;
  const model::Machine machine = machine_on(gpu, "Some Device");
  EXPECT_EQ(machine.expected->attention.size(), speed_cases(true).size() * 2 / 3);
  gpu.wrong = "a number";
  try {
    machine_on(gpu, "Some Device");
    FAIL() << "a machine without a speed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    EXPECT_NE(std::string(error.what()).find("a number"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ringlab::bench
