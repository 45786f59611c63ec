// What a device does not end: who is told, and of what.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>

#include "cli/line/endings.h"
#include "optimized/bench/gpu/gpu.h"
#include "optimized/bench/gpu/gpu_families.h"
#include "tests/optimized/bench/fake_gpu.h"

namespace ringlab::bench {
namespace {

constexpr double kLong = 100, kShort = 0.5;

/// Keeps who waits waiting until somebody was told.
class Told {
 public:
  void tell(const DeviceStuck& error) {
    const std::scoped_lock lock(mutex_);
    text_ += error.what();
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !text_.empty(); });
  }
  std::string text() {
    const std::scoped_lock lock(mutex_);
    return text_;
  }
  GpuDeadline after(double seconds) {
    return {seconds, [this](const DeviceStuck& error) { tell(error); }};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
};

/// Causal passes do not end, nor do copies from the host.
struct StuckGpu : FakeGpu {
  explicit StuckGpu(Told& given) : told(given) {}
  Told& told;

  GpuWork attention(const GpuCase& one) override {
    GpuWork work = FakeGpu::attention(one);
    if (one.mask != "causal") return work;
    work.seconds = [this, seconds = work.seconds] {
      told.wait();
      return seconds();
    };
    return work;
  }
  GpuWork hops(const HopCase& one) override {
    if (one.from == HopFrom::host && one.part == HopPart::copies) told.wait();
    return FakeGpu::hops(one);
  }
};

void measure_goals(Gpu& gpu, const std::string& goals) {
  const GpuBench bench{.gpu = gpu, .warm_up_s = 0};
  measure(
      {.rounds = 3,
       .quick = true,
       .goals = choose_goals(goals, gpu_goals()),
       .torch_python = "/no/such/python"},
      [](double, const std::string&) {}, gpu_families(bench));
}

TEST(GpuDeadline, work_that_ends_is_as_it_was_and_nobody_is_told) {
  Told told;
  FakeGpu plain;
  const auto gpu = with_deadline([] { return std::make_unique<FakeGpu>(); }, told.after(kLong));
  const GpuCase one{.mask = "causal"};
  EXPECT_EQ(gpu->facts().name, "fake");
  EXPECT_EQ(gpu->clock_hz(), plain.clock_hz());
  EXPECT_EQ(gpu->attention(one).seconds(), plain.attention(one).seconds());
  EXPECT_EQ(gpu->attention(one).kernel, "fake kernel");
  EXPECT_EQ(gpu->attention(one).wrong(), "");
  EXPECT_EQ(gpu->matrix_product(64).seconds(), plain.matrix_product(64).seconds());
  const RingClock clock = RingClock::device;
  EXPECT_EQ(gpu->ring(one, 2, clock).seconds(), plain.ring(one, 2, clock).seconds());
  EXPECT_EQ(gpu->hops({}).seconds(), plain.hops({}).seconds());
  EXPECT_EQ(gpu->versions(one)[0].work.seconds(), plain.versions(one)[0].work.seconds());
  EXPECT_THROW(gpu->cudnn_attention(one), Error);
  EXPECT_EQ(told.text(), "");
}

TEST(GpuDeadline, names_the_goal_the_kernel_and_the_case) {
  Told told;
  const auto gpu =
      with_deadline([&] { return std::make_unique<StuckGpu>(told); }, told.after(kShort));
  measure_goals(*gpu, "G1.t4k,G2.t8k");
  for (const char* part : {"G2.t8k", "fake kernel", "forward, causal, 8k tokens, head_dim 128",
                           "an end within 0.5 s", "--timeout"}) {
    EXPECT_NE(told.text().find(part), std::string::npos) << part << " in " << told.text();
  }
  EXPECT_EQ(told.text().find("G1"), std::string::npos) << told.text();
}

TEST(GpuDeadline, copies_have_it_too_from_when_they_are_made) {
  Told told;
  const auto gpu =
      with_deadline([&] { return std::make_unique<StuckGpu>(told); }, told.after(kShort));
  measure_goals(*gpu, "G8");
  for (const char* part : {"G8.host", "copies from pinned host memory", "full, 4k tokens"}) {
    EXPECT_NE(told.text().find(part), std::string::npos) << part << " in " << told.text();
  }
}

/// Its rings notice it themselves.
struct StuckRing : FakeGpu {
  GpuWork ring(const GpuCase&, int, RingClock) override {
    return {"fake kernel", []() -> double {
              throw DeviceStuck({.where = "devices",
                                 .expected = "an end within 3 s",
                                 .actual = "rank 1's stream of chunks"});
            }};
  }
};

TEST(GpuDeadline, a_ring_that_says_where_it_stands_is_told_with_its_goal) {
  Told told;
  const auto gpu = with_deadline([] { return std::make_unique<StuckRing>(); }, told.after(kLong));
  measure_goals(*gpu, "G7.p4");
  EXPECT_EQ(told.text(),
            "G7.p4, fake kernel, ring, ranks 1, causal, 16k tokens, head_dim 128, devices: "
            "expected an end within 3 s, found rank 1's stream of chunks");
}

TEST(GpuDeadlineDeathTest, the_program_ends_though_the_device_does_not) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto measure_what_never_ends = [] {
    Told told;  // nobody is
    const auto gpu =
        with_deadline([&] { return std::make_unique<StuckGpu>(told); }, {kShort, cli::leave_stuck});
    measure_goals(*gpu, "G2.t8k");
  };
  EXPECT_EXIT(measure_what_never_ends(), testing::ExitedWithCode(4),
              "ringlab: G2.t8k, .*expected an end within 0.5 s, found it still going on");
}

}  // namespace
}  // namespace ringlab::bench
