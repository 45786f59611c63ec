// Stages as they run on devices, on devices that are memory: whatever the streams do first,
// the answers are right and the same, and every event that is left out or misplaced shows.
#include "stages/08_overlapped_ring/streamed_ring.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <stdexcept>

#include "optimized/cuda/device.h"
#include "property_tests/subject.h"
#include "property_tests/verify.h"
#include "reference/core/machine_error.h"
#include "stages/10_balanced_ring/on_streams.h"
#include "stages/12_overlapped_causal_ring/on_streams.h"
#include "stages/common/costs.h"
#include "stages/common/run_ranks.h"
#include "tests/optimized/ring/fake_devices.h"
#include "tests/optimized/ring/fake_streams.h"
#include "tests/repetitions.h"
#include "tests/stages/random_runs.h"
#include "tests/stages/stage_test.h"
#include "tests/stages/work_on_memory.h"

namespace ringlab::stages::testing {
namespace {

/// One row of a call: as long as it runs its state is what a kernel's is, in base 2.
template <class Element>
void forward_row(const cuda::ForwardCall<Element>& call, std::int64_t row, std::int64_t first_key,
                 const cuda::KeyRange& seen) {
  const std::int32_t d = call.shape.head_dim, dv = call.shape.v_dim;
  SoftmaxState<float>& state = call.running.states[row];
  float* const acc = call.running.accs + row * dv;
  if (call.begins) state = {}, std::fill_n(acc, dv, 0.0f);
  for (std::int64_t key = first_key + seen.first; key < first_key + seen.last; ++key) {
    float score = 0;
    for (std::int32_t c = 0; c < d; ++c) {
      score += static_cast<float>(call.q[row * d + c]) * static_cast<float>(call.k[key * d + c]);
    }
    score *= call.scale;
    const float top = std::max(state.row_max, score);
    const float keep = std::exp2(state.row_max - top), weight = std::exp2(score - top);
    state = {top, state.row_sum * keep + weight};
    for (std::int32_t c = 0; c < dv; ++c) {
      acc[c] = acc[c] * keep + weight * static_cast<float>(call.v[key * dv + c]);
    }
  }
  if (!call.finishes) return;
  const bool empty = state.row_max == kEmptyRowMax<float>;
  call.lse[row] = empty ? state.row_max
                        : std::numbers::ln2_v<float> * (state.row_max + std::log2(state.row_sum));
  for (std::int32_t c = 0; c < dv; ++c) {
    call.out[row * dv + c] = static_cast<Element>(empty ? 0.0f : acc[c] / state.row_sum);
  }
  std::fill_n(acc, dv, std::numeric_limits<float>::quiet_NaN());  // nobody reads a finished state
}

/// Kernels as those of optimized/cuda are called, as work of streams that are memory.
template <class Element>
const ring::DeviceKernels<Element>& fast_kernels_on_memory() {
  static const ring::DeviceKernels<Element> kernels{
      .why_not = {},
      .forward_tile_queries = 4,
      .forward =
          [](const cuda::ForwardCall<Element>& call, cuda::Stream stream) {
            ring::put_on(stream, [call] {
              const cuda::BlockShape& s = call.shape;
              for (std::int64_t row = 0; row < std::int64_t{s.batch} * s.q_heads * s.queries;
                   ++row) {
                const std::int64_t kv_head = row / s.queries / (s.q_heads / s.kv_heads);
                const std::int64_t query = row % s.queries;
                const cuda::KeyRange seen = call.mask.rows[query];
                const cuda::TileKeys tile = call.mask.tiles[query / 4];
                const bool in_tile = seen.last <= seen.first ||
                                     (seen.first >= tile.any.first && seen.last <= tile.any.last);
                if (!in_tile) throw std::logic_error("a row that sees more than its tile");
                forward_row(call, row, kv_head * s.keys, seen);
              }
            });
          },
      .backward = {},
      .clear_states = {},
      .finish_rows = {},
      .delta_rows = {},
      .scale_to = {}};
  return kernels;
}

template <class Run>
RunResult run_on_memory(const AttentionInput& input, const RunOptions& options, Run run) {
  return run_together(
      input, options,
      [&]<class Element>(std::span<RankProblem<Element>> ranks, std::span<Traffic> moved) {
        run(DeviceRing<Element>{ranks, moved, kernel_on_memory<Element>(),
                                rows_on_memory<Element>()});
      });
}
RunResult run_overlapped(const AttentionInput& input, const RunOptions& options) {
  return run_on_memory(input, options,
                       [](const auto& ring) { overlapped_ring::run_on_streams(ring); });
}
RunResult run_balanced(const AttentionInput& input, const RunOptions& options) {
  return run_on_memory(input, options,
                       [](const auto& ring) { balanced_ring::run_on_streams(ring); });
}
RunResult run_skipping(const AttentionInput& input, const RunOptions& options) {
  return run_on_memory(input, options,
                       [](const auto& ring) { skipping_ring::run_on_streams(ring); });
}
/// With kernels of its own where the stage has fast ones.
RunResult run_fast(const AttentionInput& input, const RunOptions& options) {
  return run_on_memory(input, options, [](const auto& ring) {
    overlapped_causal_ring::run_on_streams(ring, []<class Element>(Element) -> decltype(auto) {
      return fast_kernels_on_memory<Element>();
    });
  });
}

struct StreamedStage {
  const char* name;
  RunResult (*run)(const AttentionInput& input, const RunOptions& options);

  const Stage& stage() const { return stage_named(name); }
};
void PrintTo(const StreamedStage& stage, std::ostream* out) { *out << stage.name; }

constexpr StreamedStage kStages[] = {{"overlapped_ring", run_overlapped},
                                     {"balanced_ring", run_balanced},
                                     {"skipping_ring", run_skipping},
                                     {"overlapped_causal_ring", run_fast}};

TEST(StreamedStages, are_all_that_run_so) {
  std::vector<std::string> found, tested;
  for (const Stage& stage : all_stages()) {
    if (stage.on_gpus) found.push_back(stage.name);
  }
  for (const StreamedStage& stage : kStages) tested.push_back(stage.name);
  EXPECT_EQ(found, tested);
}

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
                      naive_attention(input, GetParam().stage().profile(problem, on_devices)));
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
INSTANTIATE_TEST_SUITE_P(All, StreamedRingTest, ::testing::ValuesIn(kStages),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(StreamedRingTest, equals_the_naive_attention_in_any_order_of_the_streams) {
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

TEST_P(StreamedRingTest, equals_the_naive_attention_under_bit_matrices) {
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
      const StageCosts costs = GetParam().stage().costs(problem, on_devices, rank);
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
INSTANTIATE_TEST_SUITE_P(All, StreamedRingDeathTest, ::testing::ValuesIn(kStages),
                         [](const auto& each) { return std::string(each.param.name); });

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
  const auto verdict = verify::verify_subject(subject, {.cases_per_law = repetitions(15)});
  for (const verify::LawVerdict& law : verdict.laws) {
    EXPECT_FALSE(law.failure) << law.id << ": " << law.failure->message << "\n"
                              << law.failure->token;
  }
  EXPECT_GE(verdict.laws_passed(), 30);
}

class StreamedTilesTest : public StreamedRingTest {};
INSTANTIATE_TEST_SUITE_P(All, StreamedTilesTest,
                         ::testing::Values(kStages[0], kStages[1], kStages[2]),
                         [](const auto& each) { return std::string(each.param.name); });

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

// What a learner might leave out or misplace: each shows in some order.

TEST_P(StreamedRingTest, nothing_is_wrong_without_a_mistake) { EXPECT_EQ(wrong_runs(), 0); }

class LeftOutWaitTest : public StreamedRingTest {
 protected:
  static int wrong_runs_without(const char* wait) {
    int left_out = 0;
    ring::event_mistakes().leaves_out_wait = [&](const std::string& where) {
      const bool leaves_out = where.find(wait) != std::string::npos;
      left_out += leaves_out ? 1 : 0;
      return leaves_out;
    };
    const int wrong = wrong_runs();
    EXPECT_GT(left_out, 0) << wait;
    return wrong;
  }
};
INSTANTIATE_TEST_SUITE_P(All, LeftOutWaitTest, ::testing::ValuesIn(kStages),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(LeftOutWaitTest, a_chunk_computed_on_before_it_is_there_shows) {
  EXPECT_GT(wrong_runs_without("there, before it is computed on"), 10);
}
TEST_P(LeftOutWaitTest, a_chunk_sent_on_before_it_is_there_shows) {
  EXPECT_GT(wrong_runs_without("there, before it is sent on"), 10);
}
TEST_P(LeftOutWaitTest, a_slot_reused_before_its_chunk_is_computed_on_shows) {
  EXPECT_GT(wrong_runs_without("computed on, before another one comes"), 10);
}
TEST_P(LeftOutWaitTest, a_slot_reused_before_its_chunk_is_sent_shows) {
  EXPECT_GT(wrong_runs_without("sent on, before another one comes"), 10);
}

class MisplacedEventTest : public StreamedRingTest {
 protected:
  /// Events of this kind are recorded on the other stream of their rank.
  static int wrong_runs_with_misplaced(const std::string& kind) {
    std::map<std::string, std::map<std::string, cuda::Stream>> streams;  // by rank, by kind
    ring::event_mistakes().records_on = [&](const std::string& where, cuda::Stream right) {
      const std::string rank = where.substr(0, where.find(':'));
      const std::string event = where.substr(where.rfind(' ') + 1);
      streams[rank][event] = right;
      if (event != kind) return right;
      const auto other = streams[rank].find(kind == "arrived" ? "on" : "arrived");
      return other == streams[rank].end() ? right : other->second;
    };
    return wrong_runs();
  }
};
INSTANTIATE_TEST_SUITE_P(All, MisplacedEventTest, ::testing::ValuesIn(kStages),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(MisplacedEventTest, arrival_recorded_on_the_compute_stream_shows) {
  EXPECT_GT(wrong_runs_with_misplaced("arrived"), 10);
}
TEST_P(MisplacedEventTest, the_end_of_computing_recorded_on_the_copy_stream_shows) {
  EXPECT_GT(wrong_runs_with_misplaced("on"), 10);
}

}  // namespace
}  // namespace ringlab::stages::testing
