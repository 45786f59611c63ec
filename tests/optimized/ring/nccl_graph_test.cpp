// A rank's whole run over NCCL as a graph: nothing is done while it is captured, all of it when it
// is launched, in any order that streams and events leave open. Ranks are threads, NCCL and devices
// are memory.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "optimized/ring/streams/issued_streams.h"
#include "optimized/transport/nccl/nccl_group.h"
#include "reference/core/error.h"
#include "tests/optimized/ring/nccl_trial.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using nccl::fake_nccl;

class NcclGraph : public NcclJobs {};

template <class Element>
void compare_graphs(DType dtype, std::uint64_t seed) {
  Draws draws(seed);
  for (int i = 0; i < repetitions(40); ++i) {
    Trial trial = counting_trial(draws, dtype);
    const JobOutcome issued = run_job<Element>(trial);
    EXPECT_EQ(fake_nccl().captured, 0);
    EXPECT_EQ(fake_devices().graphs, 0);
    trial.options.as_graph = true;
    const JobOutcome launched = run_job<Element>(trial);
    ASSERT_EQ(launched.bits, issued.bits) << trial.text();
    ASSERT_EQ(launched.bits, expected_bits<Element>(trial)) << trial.text();
    EXPECT_EQ(fake_devices().graphs, trial.options.ranks);
    // All but the words that went round first.
    ASSERT_EQ(fake_nccl().messages, fake_nccl().captured + 4 * trial.options.ranks);
    ASSERT_EQ(fake_nccl().destroyed, 2 * trial.options.ranks);
    for (std::size_t rank = 0; rank < issued.stats.size(); ++rank) {
      EXPECT_EQ(launched.stats[rank].sent_bytes, issued.stats[rank].sent_bytes) << trial.text();
    }
  }
}

TEST_F(NcclGraph, has_the_bits_of_what_is_put_on_streams_in_random_cases) {
  compare_graphs<Half>(DType::f16, 41);
  compare_graphs<BFloat16>(DType::bf16, 42);
}

TEST_F(NcclGraph, ends_with_all_ranks_when_one_fails_while_it_captures) {
  const auto begin = std::chrono::steady_clock::now();
  make_devices(2);
  fake_nccl().meets_in_exchange = true;
  const auto errors = errors_of({.as_graph = true, .rank_without_kernel = 1});
  expect_in("broken", errors[1]);
  expect_in("another rank failed", errors[0]);
  EXPECT_EQ(fake_nccl().aborts, 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(NcclGraph, that_runs_is_aborted_at_the_deadline) {
  make_devices(2);
  fake_nccl().meets_in_exchange = true;
  const auto errors = errors_of(
      {.timeout_s = 1, .as_graph = true, .rank_without_kernel = 1, .tells_others = false});
  expect_in("broken", errors[1]);
  expect_in("wait for the device", errors[0]);
  expect_in("no end within 1000 ms", errors[0]);
  EXPECT_EQ(fake_devices().graphs, 1);
  EXPECT_EQ(fake_nccl().aborts, 4);
}

TEST_F(NcclGraph, that_never_comes_to_be_is_not_waited_for_beyond_the_deadline) {
  make_devices(2);
  fake_nccl().meets_in_exchange = true;
  const auto errors =
      errors_of({.timeout_s = 1, .as_graph = true, .rank_without_rows = 1, .tells_others = false});
  expect_in("broken", errors[1]);
  expect_in("no end within 1000 ms", errors[0]);
}

/// What can be wrong about a rank's links. `none` is for showing that the rest of them is right.
enum class Mistake {
  none,
  exchanges_elsewhere,        // on a stream that is not the one to capture
  waits_for_nothing,          // results are read while the graph runs
  aborts_one_by_one,          // chunks, and only then sums
  aborts_before_it_is_let_go  // the graph, which holds the communicators
};

class MistakenLinks final : public DeviceLinks {
 public:
  MistakenLinks(const nccl::GroupPlace& place, const TellAll& tell_all, Mistake mistake)
      : device_(place.rank),
        chunks_(place, tell_all),
        sums_(place, tell_all),
        mistake_(mistake),
        elsewhere_(cuda::make_stream(device_)) {}

  void exchange(StreamKind kind, std::span<const DeviceMessage> messages, cuda::Stream stream,
                const std::string& operation) override {
    std::vector<nccl::GroupMessage> parts;
    for (const DeviceMessage& message : messages) {
      const bool sends = message.side == MessageSide::send;
      parts.push_back({sends ? nccl::Side::send : nccl::Side::receive, message.peer, message.memory,
                       message.bytes});
    }
    const bool here = mistake_ != Mistake::exchanges_elsewhere;
    (kind == StreamKind::sums ? sums_ : chunks_)
        .exchange(parts, here ? stream : elsewhere_.get(), operation);
  }
  void wait(cuda::Stream stream) override {
    if (mistake_ == Mistake::waits_for_nothing) return;
    try {
      chunks_.wait([&] { return cuda::has_ended(device_, stream); }, "wait");
    } catch (...) {
      if (mistake_ == Mistake::aborts_before_it_is_let_go) abort();
      throw;
    }
  }
  void abort() noexcept override {
    if (mistake_ == Mistake::aborts_one_by_one) {
      chunks_.abort();
      return sums_.abort();
    }
    const std::jthread other([this] { sums_.abort(); });
    chunks_.abort();
  }

 private:
  const int device_;
  nccl::Group chunks_, sums_;
  const Mistake mistake_;
  const cuda::OwnedStream elsewhere_;
};

constexpr int kTag = 77;

struct MistakenJob {
  Mistake mistake = Mistake::none;
  bool others_come = true;  // else they connect, and that is all
  int launches = 1;
  DeviceKernels<Half> kernels = counting_kernels<Half>();
};

struct MistakenOutcome {
  Bits bits;
  std::vector<std::string> errors;
};

/// Two ranks, as graphs.
MistakenOutcome run_mistaken(const Trial& trial, const MistakenJob& job) {
  MistakenOutcome outcome{{}, std::vector<std::string>(2)};
  make_devices(2);
  fake_nccl().patience_ms = 500;
  outcome.bits = bits_of_run<Half>(trial, [&](const Ends<Half>& ends) {
    run_threads(2, {}, [&](Communicator& network) {
      const int rank = network.rank();
      try {
        MistakenLinks links({.rank = rank,
                             .ranks = 2,
                             .device = std::to_string(rank),
                             .deadline = std::chrono::milliseconds(1000)},
                            tell_all_over(network, kTag), job.mistake);
        if (rank == 1 && !job.others_come) return;
        const OverLinks<Half> place(
            job.kernels, links,
            {.rank = rank, .device = rank, .issue_as = IssueAs::graph, .launches = job.launches});
        Engine().run(trial.problem, trial.options, ends, place);
      } catch (const std::exception& error) {
        outcome.errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  });
  return outcome;
}

class NcclGraphMistakes : public testing::Test {
 protected:
  void TearDown() override {
    fake_devices() = {};
    nccl::reset_fake_nccl();
  }
  /// With gradients, so that there are sums.
  const Trial trial_ = [] {
    Trial trial = trial_of_ranks(2, 43);
    trial.gradients = true;
    return trial;
  }();
};

TEST_F(NcclGraphMistakes, none_is_found_where_there_is_none) {
  const MistakenOutcome good = run_mistaken(trial_, {});
  EXPECT_EQ(good.errors[0] + good.errors[1], "");
  EXPECT_EQ(good.bits, expected_bits<Half>(trial_));
  const MistakenOutcome alone = run_mistaken(trial_, {.others_come = false});
  expect_in("no end within 1000 ms", alone.errors[0]);
  EXPECT_EQ(fake_nccl().stuck_aborts, 0);
  EXPECT_EQ(fake_devices().graphs_cut_off, 0);
}

TEST_F(NcclGraphMistakes, do_not_hide_in_launches_that_follow) {
  const MistakenOutcome outcome = run_mistaken(trial_, {.launches = 3});
  EXPECT_EQ(outcome.errors[0] + outcome.errors[1], "");
  EXPECT_EQ(outcome.bits, expected_bits<Half>(trial_));
  EXPECT_EQ(fake_devices().graphs, 2 * 3);
  EXPECT_GT(fake_nccl().captured, 0);
  EXPECT_EQ(fake_nccl().messages, 3 * fake_nccl().captured);
}

TEST_F(NcclGraphMistakes, exchanges_outside_of_the_capture_are_found) {
  const auto errors = run_mistaken(trial_, {.mistake = Mistake::exchanges_elsewhere}).errors;
  expect_in("work on a stream that was left out of the capture", errors[0]);
  expect_in("work on a stream that was left out of the capture", errors[1]);
}

TEST_F(NcclGraphMistakes, results_that_are_read_while_it_runs_are_found) {
  const auto errors =
      run_mistaken(trial_, {.mistake = Mistake::waits_for_nothing, .others_come = false}).errors;
  expect_in("a graph that does not end", errors[0]);
}

TEST_F(NcclGraphMistakes, aborts_that_wait_for_what_nobody_lets_go_are_found) {
  for (const Mistake mistake : {Mistake::aborts_one_by_one, Mistake::aborts_before_it_is_let_go}) {
    const auto errors = run_mistaken(trial_, {.mistake = mistake, .others_come = false}).errors;
    expect_in("no end within 1000 ms", errors[0]);
    EXPECT_GT(fake_nccl().stuck_aborts, 0) << static_cast<int>(mistake);
  }
}

/// The job with a forward kernel that does `first(stream)` before.
template <class First>
std::vector<std::string> errors_with(const Trial& trial, First first) {
  MistakenJob job;
  job.kernels.forward = [kernel = job.kernels.forward, first](const cuda::ForwardCall<Half>& call,
                                                              Stream stream) {
    first(stream);
    kernel(call, stream);
  };
  return run_mistaken(trial, job).errors;
}

TEST_F(NcclGraphMistakes, kernels_on_other_streams_are_found) {
  const auto errors = errors_with(trial_, [](Stream) {
    const cuda::OwnedStream own = cuda::make_stream(0);
    put_on(own.get(), [] {});
  });
  expect_in("work on a stream that was left out of the capture", errors[0]);
}

TEST_F(NcclGraphMistakes, waits_for_events_that_were_not_captured_are_found) {
  const auto errors = errors_with(trial_, [](Stream stream) {
    const cuda::OwnedEvent never = cuda::make_event(0);
    cuda::wait_for_event(0, never.get(), stream, "");
  });
  expect_in("a wait for an event that was not captured", errors[0]);
}

TEST_F(NcclGraphMistakes, streams_that_are_not_joined_at_the_end_are_found) {
  const auto errors = errors_with(trial_, [](Stream stream) {
    const cuda::OwnedStream own = cuda::make_stream(0);
    const cuda::OwnedEvent begin = cuda::make_event(0);
    cuda::record_event(0, begin.get(), stream, "");
    cuda::wait_for_event(0, begin.get(), own.get(), "");
    put_on(own.get(), [] {});
  });
  expect_in("work that was not joined at the end", errors[0]);
}

TEST_F(NcclGraphMistakes, memory_and_ends_of_streams_asked_for_while_it_captures_are_found) {
  expect_in("memory is allocated in the midst of a capture",
            errors_with(trial_, [](Stream) { cuda::allocate(0, 16); })[0]);
  expect_in("a stream's end is asked for in the midst of a capture",
            errors_with(trial_, [](Stream stream) { cuda::has_ended(0, stream); })[0]);
}

TEST_F(NcclGraphMistakes, a_graph_that_is_destroyed_early_is_found) {
  make_devices(1);
  IssuedStreams streams({0});
  EXPECT_THROW(streams.launch_graph(), std::logic_error);
  int runs = 0;
  streams.launch_as_graph([&] { put_on(streams.of(0, StreamKind::compute), [&] { ++runs; }); });
  EXPECT_EQ(runs, 0);
  streams.finish();
  EXPECT_EQ(runs, 1);
  streams.drop_graph();
  EXPECT_THROW(streams.launch_graph(), std::logic_error);
}

TEST_F(NcclGraphMistakes, memory_that_is_freed_while_it_runs_is_found) {
  make_devices(1);
  IssuedStreams streams({0});
  cuda::OwnedMemory memory = cuda::allocate(0, 16);
  streams.launch_as_graph([&] { put_on(streams.of(0, StreamKind::compute), [] {}); });
  memory = {};
  EXPECT_EQ(fake_devices().graphs_cut_off, 1);
}

}  // namespace
}  // namespace ringlab::ring
