// Stages as they run on devices, on devices that are memory: whatever the streams do first,
// the answers are right and the same.
#include <cstdio>
#include <cstdlib>

#include "property_tests/verify.h"
#include "reference/core/machine/machine_error.h"
#include "stages/12_overlapped_causal_ring/on_streams.h"
#include "stages/common/costs.h"
#include "tests/expect_laws.h"
#include "tests/repetitions.h"
#include "tests/stages/streamed_stages.h"

namespace ringlab::stages::testing {
namespace {

TEST(StreamedStages, are_all_that_run_so) {
  std::vector<std::string> found, tested;
  for (const Stage& stage : all_stages()) {
    if (stage.on_gpus) found.push_back(stage.name);
  }
  for (const StreamedStage& stage : kStreamedStages) tested.push_back(stage.name);
  EXPECT_EQ(found, tested);
}

INSTANTIATE_TEST_SUITE_P(All, StreamedRingTest, ::testing::ValuesIn(kStreamedStages), name_of);

TEST_P(StreamedRingTest, equals_the_reference_in_any_order_of_the_streams) {
  RandomRuns runs(1);
  for (int round = 0; round < repetitions(300); ++round) {
    const Shape shape = runs.shape();
    const auto dtype = static_cast<DType>(runs.below(4));
    const Problem problem = make_problem(shape, runs.mask(shape), dtype);
    RunOptions options = random_options(runs);
    if (runs.below(2) == 1) {
      options.q_layout = runs.uneven_layout(shape.q_tokens, options.ranks);
      options.kv_layout = runs.uneven_layout(shape.kv_tokens, options.ranks);
    }
    ASSERT_EQ(check(problem, options, runs.seed()), "") << describe(problem, options);
  }
}

TEST_P(StreamedRingTest, equals_the_reference_under_bit_matrices) {
  RandomRuns runs(2);
  for (int round = 0; round < repetitions(30); ++round) {
    const Shape shape = runs.shape();
    Problem problem = make_problem(shape, "full");
    problem.mask = Mask({runs.bits(shape)}).bind(shape.q_tokens, shape.kv_tokens);
    ASSERT_EQ(check(problem, random_options(runs), runs.seed()), "");
  }
}

TEST_P(StreamedRingTest, has_the_same_bits_in_every_order) {
  RandomRuns runs(3);
  for (int round = 0; round < repetitions(20); ++round) {
    const Problem problem = make_problem({1, 2, 1, 21, 21, 3, 2}, "causal");
    const AttentionTensors tensors = random_tensors(problem, runs.seed());
    const RunOptions options = random_options(runs);
    ring::do_work_at_once();
    const AttentionOutput want = GetParam().run(tensors.input(problem), options).output;
    for (int order = 0; order < 5; ++order) {
      const RandomOrder random(runs.seed());
      const AttentionOutput got = GetParam().run(tensors.input(problem), options).output;
      ASSERT_EQ(got.out.values(), want.out.values()) << describe(problem, options);
      ASSERT_EQ(got.lse.values(), want.lse.values()) << describe(problem, options);
    }
  }
}

TEST_P(StreamedRingTest, computes_what_a_mask_leaves_in_the_types_and_shapes_of_tensor_cores) {
  RandomRuns runs(6);
  int fast = 0;
  for (int round = 0; round < repetitions(150); ++round) {
    Shape shape = runs.shape();
    shape.head_dim = 8 * (1 + runs.below(2));
    shape.v_dim = 8 * (1 + runs.below(2));
    const Problem problem =
        make_problem(shape, runs.mask(shape), runs.below(2) == 1 ? DType::f16 : DType::bf16);
    RunOptions options = random_options(runs);
    if (runs.below(3) == 0) {
      options.q_layout = runs.uneven_layout(shape.q_tokens, options.ranks);
      options.kv_layout = runs.uneven_layout(shape.kv_tokens, options.ranks);
    }
    fast += overlapped_causal_ring::takes_fast_kernel(problem, options) ? 1 : 0;
    ASSERT_EQ(check(problem, options, runs.seed()), "") << describe(problem, options);
  }
  EXPECT_GT(fast, 0);
}

TEST_P(StreamedRingTest, sends_and_holds_what_the_closed_forms_say) {
  RandomRuns runs(4);
  for (int round = 0; round < repetitions(100); ++round) {
    const Shape shape = runs.shape();
    const Problem problem = make_problem(shape, "causal", static_cast<DType>(runs.below(4)));
    RunOptions options = random_options(runs);
    if (runs.below(2) == 1) {
      options.kv_layout = runs.uneven_layout(shape.kv_tokens, options.ranks);
    }
    const RunResult result =
        GetParam().run(random_tensors(problem, runs.seed()).input(problem), options);
    RunOptions on_devices = options;
    on_devices.device = DeviceKind::cuda;
    std::int64_t pairs = 0, sent = 0, received = 0;
    for (int rank = 0; rank < options.ranks; ++rank) {
      const RankStats& stats = result.ranks[static_cast<std::size_t>(rank)];
      const StatedCosts costs = GetParam().stage().costs(problem, on_devices, rank);
      ASSERT_EQ(stats.sent_bytes, costs.sent_bytes) << describe(problem, options);
      ASSERT_EQ(stats.sent_messages, costs.sent_messages) << describe(problem, options);
      ASSERT_EQ(stats.peak_kv_bytes, costs.peak_kv_bytes) << describe(problem, options);
      for (const Visit& visit : stats.visits) pairs += visit.pairs;
      sent += stats.sent_bytes, received += stats.received_bytes;
    }
    ASSERT_EQ(pairs, problem.mask.count_all());  // skipped chunks have none
    ASSERT_EQ(sent, received);
  }
}

TEST_P(StreamedRingTest, copies_between_devices_where_there_are_several) {
  RunOptions options;
  options.ranks = 4;
  ring::fake_devices().devices = 2;
  EXPECT_EQ(check(make_problem({1, 1, 1, 8, 8, 2, 2}, "full"), options, 1), "");
  EXPECT_EQ(ring::fake_devices().copies_between, 4 * 3 * 2);  // each of K and V, three hops
}

TEST_P(StreamedRingTest, fails_when_memory_is_short_and_leaves_nothing_behind) {
  RunOptions options;
  options.ranks = 3;
  const Problem problem = make_problem({1, 1, 1, 9, 9, 2, 2}, "full");
  ASSERT_EQ(check(problem, options, 1), "");
  for (std::int64_t most = 0; most < 900; most += 40) {
    ring::fake_devices().most_bytes = most;
    EXPECT_THROW(check(problem, options, 1), Error) << most;
    EXPECT_EQ(ring::fake_devices().live_bytes, 0);
  }
}

TEST_P(StreamedRingTest, asks_until_the_streams_have_ended) {
  int asked = 0;
  ring::fake_devices().has_ended = [&](cuda::Stream) { return ++asked > 50; };
  RunOptions options;
  options.ranks = 3;
  EXPECT_EQ(check(make_problem({1, 1, 1, 9, 9, 2, 2}, "full"), options, 1), "");
  EXPECT_GT(asked, 50);
}

/// The child of a death test: what does not end is never freed, so its process ends.
void end_stuck(const StreamedStage& stage, DType dtype) {
  constexpr std::int64_t kChannels = 8;  // which tensor cores take
  const Problem problem = make_problem({1, 1, 1, 9, 9, kChannels, kChannels}, "full", dtype);
  RunOptions options;
  options.ranks = 3;
  options.timeout_s = 0.05;
  ring::fake_devices() = {.devices = 2, .has_ended = [](cuda::Stream) { return false; }};
  try {
    stage.run(random_tensors(problem, 1).input(problem), options);
  } catch (const DeviceStuck& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(ring::fake_devices().live_bytes > 0 ? error.exit_code() : 1);
  }
  std::_Exit(0);
}

using StreamedRingDeathTest = StreamedRingTest;
INSTANTIATE_TEST_SUITE_P(All, StreamedRingDeathTest, ::testing::ValuesIn(kStreamedStages), name_of);

TEST_P(StreamedRingDeathTest, that_never_ends_is_left_at_the_deadline_with_what_it_holds) {
  const std::string want = std::string("stage ") + GetParam().name +
                           ": expected an end within 0.05 s, found rank 0's kernels on device 0; "
                           "rank 0's copies on device 0; rank 1's kernels on device 1; .*--timeout";
  for (const DType dtype : {DType::f64, DType::bf16}) {
    EXPECT_EXIT(end_stuck(GetParam(), dtype), ::testing::ExitedWithCode(4), want);
  }
}

TEST_P(StreamedRingTest, keeps_every_law_that_concerns_it) {
  verify::Subject subject =
      verify::on_device(verify::find_subject(GetParam().name), DeviceKind::cuda);
  subject.run = [](const AttentionInput& input, RunOptions options) {
    options.device = DeviceKind::cpu;  // there is none that run_together() could ask for
    const RandomOrder order(options.delay_seed);
    return GetParam().run(input, options);
  };
  verify::expect_laws_kept(subject, {.cases_per_law = repetitions(15)}, 30);
}

class StreamedTilesTest : public StreamedRingTest {};
INSTANTIATE_TEST_SUITE_P(All, StreamedTilesTest,
                         ::testing::Values(kStreamedStages[0], kStreamedStages[1],
                                           kStreamedStages[2]),
                         name_of);

TEST_P(StreamedTilesTest, have_the_bits_of_the_cpu) {
  RandomRuns runs(5);
  for (int round = 0; round < repetitions(50); ++round) {
    const Shape shape = runs.shape();
    const Problem problem = make_problem(shape, runs.mask(shape));
    const AttentionTensors tensors = random_tensors(problem, runs.seed());
    const RunOptions options = random_options(runs);
    const AttentionOutput want = GetParam().stage().run(tensors.input(problem), options).output;
    const RandomOrder random(runs.seed());
    const AttentionOutput got = GetParam().run(tensors.input(problem), options).output;
    ASSERT_EQ(got.out.values(), want.out.values()) << describe(problem, options);
    ASSERT_EQ(got.lse.values(), want.lse.values()) << describe(problem, options);
  }
}

}  // namespace
}  // namespace ringlab::stages::testing
