// The stages as they run on devices, on devices that are memory, and runs of theirs in random order.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>

#include "stages/common/run_ranks.h"
#include "tests/optimized/ring/fake_devices.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"
#include "tests/stages/work_on_memory.h"

namespace ringlab::stages::testing {

struct StreamedStage {
  const char* name;
  RunResult (*run)(const AttentionInput& input, const RunOptions& options);

  const Stage& stage() const { return stage_named(name); }
};
inline void PrintTo(const StreamedStage& stage, std::ostream* out) { *out << stage.name; }

/// In the order of all_stages().
extern const std::array<StreamedStage, 4> kStreamedStages;

/// What one of them does on fresh devices.
class StreamedRingTest : public ::testing::TestWithParam<StreamedStage> {
 protected:
  void SetUp() override { ring::fake_devices() = {}; }
  void TearDown() override {
    EXPECT_EQ(ring::fake_devices().live_bytes, 0);
    EXPECT_EQ(ring::fake_devices().live_handles, 0);
    ring::event_mistakes() = {};
  }

  /// Empty for the right answer, else what is wrong.
  static std::string check(const Problem& problem, const RunOptions& options, std::uint64_t seed) {
    const AttentionTensors tensors = random_tensors(problem, seed);
    const AttentionInput input = tensors.input(problem);
    const RandomOrder order(seed);
    RunOptions on_devices = options;  // for what is promised there
    on_devices.device = DeviceKind::cuda;
    return difference(GetParam().run(input, options).output,
                      expected_of(input, GetParam().stage().profile(problem, on_devices)));
  }
  static RunOptions random_options(RandomRuns& runs) {
    RunOptions options = runs.options();
    options.slots = static_cast<int>(1 + runs.below(5));
    ring::fake_devices().devices = static_cast<int>(1 + runs.below(4));
    return options;
  }

  /// In how many of 60 runs with several hops the answer is wrong.
  static int wrong_runs() {
    RandomRuns runs(9);
    int wrong = 0;
    for (int round = 0; round < 60; ++round) {
      RunOptions options = random_options(runs);
      options.ranks = 4 + static_cast<int>(runs.below(4));
      options.slots = 2 + static_cast<int>(runs.below(2));
      const Problem problem =
          make_problem({1, 2, 1, 24, 24, 8, 8}, "full", round % 2 == 0 ? DType::f32 : DType::bf16);
      wrong += check(problem, options, runs.seed()).empty() ? 0 : 1;
    }
    return wrong;
  }
};

inline std::string name_of(const ::testing::TestParamInfo<StreamedStage>& each) {
  return each.param.name;
}

}  // namespace ringlab::stages::testing
