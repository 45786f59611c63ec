// Jobs of ranks over NCCL that are threads: NCCL and devices are memory, and kernels count what
// their queries see.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "optimized/ring/messages/nccl_run.h"
#include "optimized/transport/run_network.h"
#include "tests/optimized/ring/counting_kernels.h"
#include "tests/optimized/ring/fake_devices.h"
#include "tests/optimized/transport/fake_nccl.h"

namespace ringlab::ring {

inline std::atomic<int> freed_in_use = 0;

/// Devices whose memory must not be given back while messages would still use it.
inline void make_devices(int devices) {
  nccl::reset_fake_nccl();
  nccl::fake_nccl().capture = capture_on;
  nccl::fake_nccl().run_graphs = run_dropped_graphs;
  freed_in_use = 0;
  fake_devices() = {
      .devices = devices,
      .has_ended = [](cuda::Stream stream) { return nccl::messages_left(stream) == 0; },
      .on_free =
          [](const std::byte* memory, std::int64_t bytes) {
            freed_in_use += nccl::nccl_uses(memory, bytes) ? 1 : 0;
          }};
}

/// A test that leaves nothing behind, and nothing that is in use.
class NcclJobs : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(freed_in_use, 0);
    EXPECT_EQ(fake_devices().graphs_cut_off, 0);
    EXPECT_EQ(fake_devices().live_bytes, 0);
    EXPECT_EQ(fake_devices().live_handles, 0);
    EXPECT_EQ(nccl::fake_nccl().stuck_aborts, 0);
    EXPECT_EQ(nccl::fake_nccl().aborts + nccl::fake_nccl().destroyed, nccl::fake_nccl().inits);
    fake_devices() = {};
    nccl::reset_fake_nccl();
  }
};

/// All ranks need all chunks.
inline Trial trial_of_ranks(int ranks, std::uint64_t seed) {
  Draws draws(seed);
  for (;;) {
    Trial trial = counting_trial(draws, DType::f16);
    if (trial.options.ranks == ranks && trial.problem.mask.text() == "full" &&
        trial.problem.shape.q_tokens >= ranks && trial.problem.shape.kv_tokens >= ranks) {
      return trial;
    }
  }
}

struct JobOutcome {
  Bits bits;
  std::vector<RankStats> stats;
  std::vector<int> devices;  // which each rank took
};

/// One job, with a device for every rank.
template <class Element>
JobOutcome run_job(const Trial& trial) {
  const auto ranks = static_cast<std::size_t>(trial.options.ranks);
  make_devices(trial.options.ranks);
  nccl::fake_nccl().meets_in_exchange = true;
  JobOutcome outcome{{}, std::vector<RankStats>(ranks), std::vector<int>(ranks)};
  outcome.bits = bits_of_run<Element>(trial, [&](const Ends<Element>& ends) {
    run_threads(trial.options.ranks, {}, [&](Communicator& network) {
      const ProcessJob job{.network = network};
      const auto rank = static_cast<std::size_t>(network.rank());
      const RankDevice device = choose_rank_device(tell_all_of(job), network.rank(), "here");
      outcome.devices[rank] = device.number;
      const OneNcclRank<Element> place(counting_kernels<Element>(), job, device);
      outcome.stats[rank] = Engine().run(trial.problem, trial.options, ends, place).ranks.front();
    });
  });
  return outcome;
}

/// A job that does not end well, and whether others hear of it.
struct FailingJob {
  int ranks = 2;
  double timeout_s = 60;
  bool as_graph = false;
  int rank_without_rows = -1;    // its source throws
  int rank_without_kernel = -1;  // its last forward kernel throws
  bool tells_others = true;
};

/// The errors' texts.
inline std::vector<std::string> errors_of(const FailingJob& failing) {
  Trial trial = trial_of_ranks(failing.ranks, 29);
  trial.options.timeout_s = failing.timeout_s;
  trial.options.as_graph = failing.as_graph;
  std::vector<std::string> errors(static_cast<std::size_t>(failing.ranks));
  std::atomic<bool> has_failed = false;
  const auto break_off = [](int rank) {
    throw_environment_error({.where = "rank " + std::to_string(rank), .actual = "broken"});
  };
  const auto run_rank = [&](Communicator& network) {
    const int rank = network.rank();
    const ProcessJob job{
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
    const Ends<Half> ends{.source =
                              [&](const RankTokens& tokens) {
                                if (rank == failing.rank_without_rows) break_off(rank);
                                return rows_of_trial<Half>(trial, tokens);
                              },
                          .sink = [](const RankTokens&, RankResult<Half>&&) {}};
    const RankDevice device = choose_rank_device(tell_all_of(job), rank, "here");
    Engine().run(trial.problem, trial.options, ends, OneNcclRank<Half>(kernels, job, device));
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

inline void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace ringlab::ring
