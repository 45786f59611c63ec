// A ring of ranks over NCCL from its beginning to its results: ranks are threads, NCCL and devices
// are memory, and kernels count what their queries see.
#include "optimized/ring/nccl_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "optimized/ring/link_probe.h"
#include "optimized/transport/run_network.h"
#include "reference/core/error.h"
#include "tests/optimized/ring/counting_kernels.h"
#include "tests/optimized/ring/fake_devices.h"
#include "tests/optimized/transport/fake_nccl.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using nccl::fake_nccl;

std::atomic<int> freed_in_use = 0;

/// Devices whose memory must not be given back while messages would still use it.
void make_devices(int devices) {
  nccl::reset_fake_nccl();
  freed_in_use = 0;
  fake_devices() = {
      .devices = devices,
      .has_ended = [](cuda::Stream stream) { return nccl::messages_left(stream) == 0; },
      .on_free =
          [](const std::byte* memory, std::int64_t bytes) {
            freed_in_use += nccl::nccl_uses(memory, bytes) ? 1 : 0;
          }};
}

class NcclRun : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(freed_in_use, 0);
    EXPECT_EQ(fake_devices().live_bytes, 0);
    EXPECT_EQ(fake_devices().live_handles, 0);
    EXPECT_EQ(fake_nccl().aborts + fake_nccl().destroyed, fake_nccl().inits);
    fake_devices() = {};
  }
};

/// All ranks need all chunks.
Trial trial_of_ranks(int ranks, std::uint64_t seed) {
  Draws draws(seed);
  for (;;) {
    Trial trial = counting_trial(draws, DType::f16);
    if (trial.options.ranks == ranks && trial.problem.mask.text() == "full" &&
        trial.problem.shape.q_tokens >= ranks && trial.problem.shape.kv_tokens >= ranks) {
      return trial;
    }
  }
}

struct Outcome {
  Bits bits;
  std::vector<RankStats> stats;
  std::vector<int> devices;  // which each rank took
};

/// One job, with a device for every rank.
template <class Element>
Outcome run_job(const Trial& trial) {
  const auto ranks = static_cast<std::size_t>(trial.options.ranks);
  make_devices(trial.options.ranks);
  fake_nccl().meets_in_exchange = true;
  Outcome outcome{{}, std::vector<RankStats>(ranks), std::vector<int>(ranks)};
  outcome.bits = bits_of_run<Element>(trial, [&](const NativeEnds<Element>& ends) {
    run_threads(trial.options.ranks, {}, [&](Communicator& network) {
      const NcclJob job{.network = network};
      const auto rank = static_cast<std::size_t>(network.rank());
      const RankDevice device = choose_rank_device(tell_all_of(job), network.rank(), "here");
      outcome.devices[rank] = device.number;
      outcome.stats[rank] = run_rank_over_nccl<Element>(trial.problem, trial.options, ends,
                                                        counting_kernels<Element>(), job, device);
    });
  });
  return outcome;
}

template <class Element>
void compare_jobs(DType dtype, std::uint64_t seed) {
  Draws draws(seed);
  for (int i = 0; i < repetitions(40); ++i) {
    const Trial trial = counting_trial(draws, dtype);
    const Outcome outcome = run_job<Element>(trial);
    ASSERT_EQ(outcome.bits, expected_bits<Element>(trial)) << trial.text();
    int sent = 0;
    for (const RankStats& rank : outcome.stats) sent += static_cast<int>(rank.sent_messages);
    // Both ends of what was sent, except what has no bytes, and the words that went round first.
    ASSERT_LE(fake_nccl().messages, 2 * sent + 4 * trial.options.ranks) << trial.text();
    ASSERT_GE(fake_nccl().messages, 4 * trial.options.ranks) << trial.text();
    ASSERT_EQ(fake_nccl().destroyed, 2 * trial.options.ranks) << trial.text();
  }
}

TEST_F(NcclRun, counts_right_in_random_cases_of_both_types) {
  compare_jobs<Half>(DType::f16, 25);
  compare_jobs<BFloat16>(DType::bf16, 26);
}

TEST_F(NcclRun, of_one_rank_sends_to_itself_before_it_begins_and_nothing_after) {
  const Trial trial = trial_of_ranks(1, 27);
  const Outcome outcome = run_job<Half>(trial);
  EXPECT_EQ(outcome.bits, expected_bits<Half>(trial)) << trial.text();
  EXPECT_EQ(fake_nccl().messages, 4);  // chunks and sums, sent and received
  EXPECT_EQ(outcome.stats[0].sent_messages, 0);
}

TEST_F(NcclRun, gives_every_rank_of_a_machine_a_device_of_its_own) {
  const Trial trial = trial_of_ranks(3, 28);
  EXPECT_EQ(run_job<Half>(trial).devices, (std::vector{0, 1, 2}));
  make_devices(2);
  const auto number = [](int rank, std::vector<std::string> machines) {
    const std::string mine = machines[static_cast<std::size_t>(rank)];
    return choose_rank_device([&](const std::string&) { return machines; }, rank, mine).number;
  };
  EXPECT_EQ(number(0, {"a", "b", "a", "a", "b"}), 0);
  EXPECT_EQ(number(1, {"a", "b", "a", "a", "b"}), 0);
  EXPECT_EQ(number(2, {"a", "b", "a", "a", "b"}), 1);
  EXPECT_EQ(number(3, {"a", "b", "a", "a", "b"}), 0);  // shared, which NCCL is asked about
  EXPECT_EQ(number(4, {"a", "b", "a", "a", "b"}), 1);
  EXPECT_NE(this_machine(), "");
  EXPECT_EQ(this_machine(), this_machine());
}

/// A job that does not end well, and whether others hear of it.
struct Failing {
  int ranks = 2;
  double timeout_s = 60;
  int rank_without_rows = -1;    // its source throws
  int rank_without_kernel = -1;  // its last forward kernel throws
  bool tells_others = true;
};

/// The errors' texts.
std::vector<std::string> errors_of(const Failing& failing) {
  Trial trial = trial_of_ranks(failing.ranks, 29);
  trial.options.timeout_s = failing.timeout_s;
  std::vector<std::string> errors(static_cast<std::size_t>(failing.ranks));
  std::atomic<bool> has_failed = false;
  const auto break_off = [](int rank) {
    throw_environment_error({.where = "rank " + std::to_string(rank), .actual = "broken"});
  };
  const auto run_rank = [&](Communicator& network) {
    const int rank = network.rank();
    const NcclJob job{
        .network = network, .check_others = [&](const std::string& operation) {
          if (!failing.tells_others || !has_failed) return;
          throw RankError({.rank = rank, .operation = operation, .reason = "another rank failed"});
        }};
    DeviceKernels<Half> kernels = counting_kernels<Half>();
    if (rank == failing.rank_without_kernel) {
      kernels.forward = [&](const cuda::ForwardCall<Half>& call, Stream) {
        if (call.finishes) break_off(rank);
      };
    }
    const NativeEnds<Half> ends{.source =
                                    [&](const RankPlace& place) {
                                      if (rank == failing.rank_without_rows) break_off(rank);
                                      return shard_of_trial<Half>(trial, place);
                                    },
                                .sink = [](const RankPlace&, NativeResult<Half>&&) {}};
    const RankDevice device = choose_rank_device(tell_all_of(job), rank, "here");
    run_rank_over_nccl<Half>(trial.problem, trial.options, ends, kernels, job, device);
  };
  run_threads(failing.ranks, {}, [&](Communicator& network) {
    try {
      run_rank(network);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::environment);
      errors[static_cast<std::size_t>(network.rank())] = error.what();
      has_failed = true;
    }
  });
  return errors;
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(NcclRun, ends_soon_when_a_rank_fails_and_frees_no_memory_that_is_in_use) {
  const auto begin = std::chrono::steady_clock::now();
  for (const bool in_kernel : {true, false}) {
    make_devices(2);
    fake_nccl().meets_in_exchange =
        !in_kernel;  // else the kernel is reached with messages under way
    const auto errors = errors_of(
        {.rank_without_rows = in_kernel ? -1 : 1, .rank_without_kernel = in_kernel ? 1 : -1});
    expect_in("broken", errors[1]);
    expect_in("another rank failed", errors[0]);
    EXPECT_EQ(fake_nccl().aborts, in_kernel ? 4 : 2);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(NcclRun, frees_nothing_that_a_message_uses_when_its_own_kernel_fails) {
  make_devices(2);
  // The other rank has no rows, so that what this one sends and receives never meets.
  const auto errors = errors_of(
      {.timeout_s = 0.3, .rank_without_rows = 0, .rank_without_kernel = 1, .tells_others = false});
  expect_in("broken", errors[0]);
  expect_in("broken", errors[1]);
}

TEST_F(NcclRun, ends_at_its_deadline_when_nobody_says_that_a_rank_is_gone) {
  make_devices(2);
  fake_nccl().meets_in_exchange = true;
  const auto errors = errors_of({.timeout_s = 0.3, .rank_without_rows = 1, .tells_others = false});
  expect_in("broken", errors[1]);
  expect_in("no end within 300 ms", errors[0]);
  EXPECT_EQ(fake_nccl().aborts, 2);
}

TEST_F(NcclRun, of_two_ranks_on_a_device_is_refused_before_nccl_2_30) {
  make_devices(1);
  for (const std::string& text : errors_of({})) {
    expect_in("a device for every rank, or NCCL 2.30", text);
    expect_in("bus 0 of machine here", text);
  }
  EXPECT_EQ(fake_nccl().inits, 0);
  make_devices(1);
  fake_nccl().version = 23000;
  fake_nccl().meets_in_exchange = true;
  EXPECT_EQ(errors_of({}), std::vector<std::string>(2));
}

TEST_F(NcclRun, does_not_begin_over_links_that_spoil_what_they_carry) {
  for (const int ranks : {1, 3}) {
    make_devices(ranks);
    fake_nccl().meets_in_exchange = true;
    fake_nccl().spoils = true;
    for (const std::string& text : errors_of({.ranks = ranks})) {
      expect_in("links for chunks: expected the 251 bytes that rank", text);
    }
  }
}

TEST_F(NcclRun, is_for_all_ranks_of_its_network) {
  Trial trial = trial_of_ranks(3, 30);
  make_devices(2);
  run_threads(2, {}, [&](Communicator& network) {
    const NcclJob job{.network = network};
    const RankDevice device = choose_rank_device(tell_all_of(job), network.rank(), "here");
    EXPECT_THROW(run_rank_over_nccl<Half>(trial.problem, trial.options, {},
                                          counting_kernels<Half>(), job, device),
                 Error);
  });
}

}  // namespace
}  // namespace ringlab::ring
