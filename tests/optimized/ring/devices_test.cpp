// The executor of stream programs, on devices that are plain memory and with kernels that count.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "optimized/ring/streams/cuda_streams.h"
#include "optimized/ring/streams/device_copies.h"
#include "property_tests/programs/trace_check.h"
#include "reference/core/machine/machine_error.h"
#include "tests/optimized/ring/counting_kernels.h"
#include "tests/optimized/ring/fake_devices.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

template <class Element>
Bits device_bits(const Trial& trial, const DeviceRun& run) {
  return bits_of_run<Element>(trial, [&](const Ends<Element>& ends) {
    Engine().run(trial.problem, trial.options, ends,
                 OnStreams<Element>(counting_kernels<Element>(), run));
  });
}

template <class Element>
void compare_many_trials(DType dtype, std::uint64_t seed) {
  Draws draws(seed);
  for (int i = 0; i < repetitions(250); ++i) {
    const Trial trial = counting_trial(draws, dtype);
    fake_devices().devices = static_cast<int>(draws.between(1, 4));
    DeviceRun run;
    run.devices = draws.chance(30) ? 1 : 0;
    run.copy_by = draws.chance(50) ? CopyBy::sender : CopyBy::receiver;
    run.issue_as = draws.chance(50) ? IssueAs::graph : IssueAs::streams;
    if (run.issue_as == IssueAs::graph) run.launches = static_cast<int>(draws.between(1, 3));
    if (draws.chance(30)) run.unwritten = UnwrittenMemory::nan;
    if (draws.chance(30)) {
      run.edit = [](const StreamProgram& program) { return with_delays(program, 3, 10); };
    }
    ASSERT_EQ(device_bits<Element>(trial, run), expected_bits<Element>(trial)) << trial.text();
    ASSERT_EQ(fake_devices().live_bytes, 0);
    ASSERT_EQ(fake_devices().live_handles, 0);
  }
}

TEST(Devices, count_right_in_random_cases) {
  compare_many_trials<Half>(DType::f16, 5);
  compare_many_trials<BFloat16>(DType::bf16, 6);
  EXPECT_GT(fake_devices().copies_between, 0);
  EXPECT_GT(fake_devices().graphs, 0);
  EXPECT_GT(fake_devices().spun_ns, 0);
}

TEST(Devices, give_back_everything_when_memory_runs_out) {
  Draws draws(9);
  const Trial trial = counting_trial(draws, DType::f16);
  fake_devices().devices = 2;
  EXPECT_NO_THROW(device_bits<Half>(trial, {}));
  const std::int64_t all = fake_devices().allocations;
  for (std::int64_t most = 1; most < 4096; most += 97) {
    fake_devices().most_bytes = most;
    try {
      device_bits<Half>(trial, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::environment);
    }
    ASSERT_EQ(fake_devices().live_bytes, 0);
    ASSERT_EQ(fake_devices().live_handles, 0);
  }
  EXPECT_GT(fake_devices().allocations, all);
  fake_devices().most_bytes = std::int64_t{1} << 40;
}

/// The child of a death test: what does not end is never freed, so its process ends.
template <class Prepare>
void end_stuck(Prepare prepare, const DeviceRun& run) {
  Draws draws(13);
  Trial trial = counting_trial(draws, DType::f16);
  trial.options.ranks = 3;
  trial.gradients = false;
  fake_devices().devices = 2;
  prepare();
  const std::int64_t before = fake_devices().live_bytes;
  try {
    device_bits<Half>(trial, run);
  } catch (const DeviceStuck& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(fake_devices().live_bytes > before ? error.exit_code() : 1);
  }
  std::_Exit(0);
}
void never_end() {
  fake_devices().has_ended = [](cuda::Stream) { return false; };
}

constexpr double kDeadline_s = 0.05;

TEST(DevicesDeathTest, that_never_end_are_left_at_the_deadline_with_what_they_hold) {
  EXPECT_EXIT(end_stuck(never_end, {.timeout_s = kDeadline_s}), testing::ExitedWithCode(4),
              "expected an end within 0.05 s.*--timeout");
  EXPECT_EXIT(end_stuck(never_end, {.issue_as = IssueAs::graph, .timeout_s = kDeadline_s}),
              testing::ExitedWithCode(4), "a graph that has not ended");
}

TEST(DevicesDeathTest, that_never_end_say_where_each_stream_stands) {
  const auto one_event_has_happened = [] {
    never_end();
    fake_devices().has_happened = [first = cuda::Event{}](cuda::Event event) mutable {
      if (first == nullptr) first = event;
      return event == first;
    };
  };
  EXPECT_EXIT(end_stuck(one_event_has_happened, {.timeout_s = kDeadline_s}),
              testing::ExitedWithCode(4),
              "rank 0's stream of [a-z]+ on device 0: .*the last that ended is \\(forward, rank "
              "[0-9], step .*, and not \\(forward, rank");
}

TEST(Devices, that_end_in_time_keep_a_deadline) {
  Draws draws(13);
  const Trial trial = counting_trial(draws, DType::f16);
  int asked = 0;
  fake_devices().has_ended = [&](cuda::Stream) { return ++asked > 20; };
  EXPECT_EQ(device_bits<Half>(trial, {.timeout_s = 60}), expected_bits<Half>(trial));
  EXPECT_GT(asked, 20);
  fake_devices().has_ended = {};
  EXPECT_EQ(fake_devices().live_bytes, 0);
}

/// Ends that count the runs between their first source and their last sink: `most` at the same time.
Ends<Half> counted(const Ends<Half>& ends, int ranks, std::atomic<int>& inside,
                   std::atomic<int>& most) {
  const auto sources = std::make_shared<int>(0), sinks = std::make_shared<int>(0);
  return {.source =
              [&ends, &inside, &most, sources](const RankTokens& tokens) {
                if ((*sources)++ == 0) most = std::max<int>(most, ++inside);
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                return ends.source(tokens);
              },
          .sink =
              [&ends, &inside, ranks, sinks](const RankTokens& tokens, RankResult<Half>&& result) {
                ends.sink(tokens, std::move(result));
                if (++*sinks == ranks) --inside;
              }};
}

TEST(Devices, have_the_runs_of_several_threads_one_after_the_other) {
  Draws draws(13);
  const Trial trial = counting_trial(draws, DType::f16);
  fake_devices().devices = 1;
  std::atomic<int> inside = 0, most = 0;
  const auto run_some = [&] {
    for (int i = 0; i < 5; ++i) {
      const Bits bits = bits_of_run<Half>(trial, [&](const Ends<Half>& ends) {
        Engine().run(trial.problem, trial.options, counted(ends, trial.options.ranks, inside, most),
                     OnStreams<Half>(counting_kernels<Half>()));
      });
      EXPECT_EQ(bits, expected_bits<Half>(trial));
    }
  };
  { const std::jthread one(run_some), other(run_some); }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(inside, 0);
}

RunSummary summary_of(const Trial& trial, const DeviceRun& run) {
  RunSummary summary;
  bits_of_run<Half>(trial, [&](const Ends<Half>& ends) {
    summary = Engine().run(trial.problem, trial.options, ends,
                           OnStreams<Half>(counting_kernels<Half>(), run));
  });
  return summary;
}

/// Of a run with one device, on which the recording of an event takes a microsecond and nothing else
/// takes time.
RunSummary timed_summary(const DeviceRun& run) {
  Draws draws(13);
  Trial trial = counting_trial(draws, DType::f16);
  trial.options.ranks = 3;
  fake_devices().devices = 1;
  return summary_of(trial, run);
}

TEST(Devices, are_timed_by_their_own_clock_from_the_first_operation_to_the_last) {
  constexpr double kEvent_s = 1e-6;
  const RunSummary launched = timed_summary({.issue_as = IssueAs::graph, .launches = 2});
  EXPECT_NEAR(launched.device_seconds, kEvent_s, 1e-12) << "a launch, and no event but the last";
  EXPECT_GT(timed_summary({}).device_seconds, 10 * kEvent_s) << "fork and join at least";
}

TEST(Devices, stand_still_while_they_are_given_a_run_that_is_to_be_timed) {
  const std::int64_t before_ns = fake_devices().spun_ns;
  timed_summary({});
  EXPECT_EQ(fake_devices().spun_ns, before_ns);
  timed_summary({.begins = RunBegins::when_issued});
  EXPECT_GT(fake_devices().spun_ns, before_ns + 1'000'000);
}

TEST(Devices, that_cannot_reach_each_other_are_named) {
  EXPECT_EQ(copies_text(1), "");
  EXPECT_EQ(copies_text(2), "from device to device");
  fake_devices().unconnected = {{0, 1}, {1, 0}};
  EXPECT_EQ(copies_text(2), "0 -> 1 and 1 -> 0 through the host");
  fake_devices().unconnected = {{0, 2}, {1, 2}, {2, 0}};
  EXPECT_EQ(copies_text(3), "0 -> 2, 1 -> 2 and 2 -> 0 through the host");
  fake_devices().unconnected = {};
}

TEST(Devices, hold_what_is_said_before_to_the_byte) {
  Draws draws(17);
  fake_devices().devices = 1;
  int refused = 0;
  for (int i = 0; i < repetitions(60); ++i) {
    const Trial trial = counting_trial(draws, DType::f16);
    fake_devices().peak_bytes = 0;
    device_bits<Half>(trial, {});
    const std::int64_t peak = fake_devices().peak_bytes;
    if (peak == 0) continue;
    fake_devices().free_bytes = peak;
    EXPECT_NO_THROW(device_bits<Half>(trial, {})) << trial.text();
    fake_devices().free_bytes = peak - 1;
    const std::int64_t allocations = fake_devices().allocations;
    try {
      device_bits<Half>(trial, {});
      ADD_FAILURE() << trial.text();
    } catch (const MachineError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("which the whole run of"), std::string::npos) << text;
      EXPECT_NE(text.find("free of"), std::string::npos) << text;
      ++refused;
    }
    EXPECT_EQ(fake_devices().allocations, allocations);
    fake_devices().free_bytes = std::int64_t{1} << 40;
  }
  EXPECT_GT(refused, repetitions(60) / 2);
}

/// What is wrong with the events of one pass.
std::vector<std::string> findings_of(const Trial& trial, const RunSummary& summary, Pass pass) {
  std::vector<std::vector<TraceEvent>> events(summary.ranks.size());
  for (std::size_t rank = 0; rank < events.size(); ++rank) {
    for (const TraceEvent& event : summary.ranks[rank].events) {
      EXPECT_LT(event.begin_ns, event.end_ns);
      if (event.pass == pass) events[rank].push_back(event);
    }
  }
  const Shape& shape = trial.problem.shape;
  const NeedMatrix need = need_matrix(
      trial.problem.mask, make_layout(trial.options, shape.q_tokens, trial.options.q_layout),
      make_layout(trial.options, shape.kv_tokens, trial.options.kv_layout));
  return check_trace(events, build_schedule(schedule_spec(trial.options), need, pass));
}

TEST(Devices, leave_traces_that_obey_the_invariants_of_the_model) {
  Draws draws(19);
  fake_devices().devices = 3;
  std::size_t events = 0;
  for (int i = 0; i < repetitions(100); ++i) {
    Trial trial = counting_trial(draws, DType::f16);
    EXPECT_TRUE(summary_of(trial, {}).ranks[0].events.empty());
    trial.options.trace = true;
    const CopyBy copy_by = draws.chance(50) ? CopyBy::sender : CopyBy::receiver;
    const RunSummary summary = summary_of(trial, {.copy_by = copy_by});
    for (const RankStats& rank : summary.ranks) events += rank.events.size();
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      if (pass == Pass::backward && !trial.gradients) continue;
      const std::vector<std::string> findings = findings_of(trial, summary, pass);
      ASSERT_TRUE(findings.empty()) << trial.text() << "\n" << findings.front();
    }
    EXPECT_THROW(summary_of(trial, {.issue_as = IssueAs::graph}), Error);
    ASSERT_EQ(fake_devices().live_handles, 0);
  }
  EXPECT_GT(events, 100u);
}

TEST(Devices, refuse_what_they_cannot_do) {
  Draws draws(11);
  Trial trial = counting_trial(draws, DType::f16);
  trial.options.wire = WireFormat::exact;
  EXPECT_NO_THROW(device_bits<Half>(trial, {}));
  EXPECT_THROW(device_bits<BFloat16>(trial, {}), Error);
  EXPECT_THROW(device_bits<Half>(trial, {.devices = 99}), Error);
  EXPECT_THROW(device_bits<Half>(trial, {.launches = 2}), Error);
  EXPECT_THROW(device_bits<Half>(trial, {.issue_as = IssueAs::graph, .launches = 0}), Error);
  Trial modified = trial;
  modified.problem.modifiers.softcap = 3;
  EXPECT_THROW(device_bits<Half>(modified, {}), Error);
  Trial narrow = trial;
  narrow.options.wire = WireFormat::fp8;
  EXPECT_THROW(device_bits<Half>(narrow, {}), Error);
}

}  // namespace
}  // namespace ringlab::ring
