// A ring of ranks over NCCL from its beginning to its results: ranks are threads, NCCL and devices
// are memory, and kernels count what their queries see.
#include "optimized/ring/messages/nccl_run.h"

#include <gtest/gtest.h>

#include <chrono>

#include "reference/core/error.h"
#include "tests/optimized/ring/nccl_trial.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using nccl::fake_nccl;

class NcclRun : public NcclJobs {};

template <class Element>
void compare_jobs(DType dtype, std::uint64_t seed) {
  Draws draws(seed);
  for (int i = 0; i < repetitions(40); ++i) {
    const Trial trial = counting_trial(draws, dtype);
    const JobOutcome outcome = run_job<Element>(trial);
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
  const JobOutcome outcome = run_job<Half>(trial);
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
      {.timeout_s = 1, .rank_without_rows = 0, .rank_without_kernel = 1, .tells_others = false});
  expect_in("broken", errors[0]);
  expect_in("broken", errors[1]);
}

TEST_F(NcclRun, ends_at_its_deadline_when_nobody_says_that_a_rank_is_gone) {
  make_devices(2);
  fake_nccl().meets_in_exchange = true;
  const auto errors = errors_of({.timeout_s = 1, .rank_without_rows = 1, .tells_others = false});
  expect_in("broken", errors[1]);
  expect_in("no end within 1000 ms", errors[0]);
  EXPECT_EQ(fake_nccl().aborts, 2);
}

TEST_F(NcclRun, of_two_ranks_on_a_device_is_refused_unless_nccl_is_new_and_told) {
  make_devices(1);
  for (const std::string& text : errors_of({})) {
    expect_in("a device for every rank, or NCCL 2.30", text);
    expect_in("bus 0 of machine here", text);
  }
  EXPECT_EQ(fake_nccl().inits, 0);
  make_devices(1);
  fake_nccl().version = 23000;
  fake_nccl().meets_in_exchange = true;
  for (const std::string& text : errors_of({})) expect_in("NCCL_MULTI_RANK_GPU_ENABLE=1", text);
  EXPECT_EQ(fake_nccl().inits, 0);
  ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  make_devices(1);
  fake_nccl().version = 23000;
  fake_nccl().meets_in_exchange = true;
  EXPECT_EQ(errors_of({}), std::vector<std::string>(2));
  ::unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
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
    const ProcessJob job{.network = network};
    const RankDevice device = choose_rank_device(tell_all_of(job), network.rank(), "here");
    EXPECT_THROW(Engine().run<Half>(trial.problem, trial.options, {},
                                    OneNcclRank<Half>(counting_kernels<Half>(), job, device)),
                 Error);
  });
}

}  // namespace
}  // namespace ringlab::ring
