// The executor of message programs: ranks are threads with a device of plain memory each, of which
// one runs at a time, until its messages have met their other ends.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <thread>

#include "optimized/ring/messages/cuda_messages.h"
#include "reference/core/machine/machine_error.h"
#include "tests/optimized/ring/counting_kernels.h"
#include "tests/optimized/ring/fake_devices.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

/// Where messages meet. Who holds the lock runs.
class Exchange {
 public:
  std::mutex& turn() { return turn_; }

  /// Returns when all messages of the group have met; the others run in between. Each meets in the
  /// order of its line.
  void meet(std::unique_lock<std::mutex>& held, int rank, StreamKind kind,
            std::span<const DeviceMessage> messages) {
    std::size_t left = messages.size();
    for (const DeviceMessage& mine : messages) post(rank, kind, mine, left);
    arrived_.notify_all();
    const bool met = arrived_.wait_for(held, std::chrono::seconds(60), [&] { return left == 0; });
    if (!met) {
      throw_environment_error({.where = "rank " + std::to_string(rank),
                               .expected = "messages that meet",
                               .actual = std::to_string(left) + " that do not"});
    }
  }
  int sizes_that_differ() const { return sizes_that_differ_; }
  int messages() const { return messages_; }

 private:
  struct Posted {
    DeviceMessage message;
    std::size_t* left = nullptr;
  };

  void post(int rank, StreamKind kind, const DeviceMessage& mine, std::size_t& left) {
    const bool sends = mine.side == MessageSide::send;
    const int from = sends ? rank : mine.peer, to = sends ? mine.peer : rank;
    std::deque<Posted>& theirs = posted_[{kind, from, to, !sends}];
    if (theirs.empty()) {
      posted_[{kind, from, to, sends}].push_back({mine, &left});
      return;
    }
    const Posted other = theirs.front();
    theirs.pop_front();
    const DeviceMessage& source = sends ? mine : other.message;
    const DeviceMessage& target = sends ? other.message : mine;
    sizes_that_differ_ += source.bytes != target.bytes ? 1 : 0;
    std::copy_n(source.memory, std::min(source.bytes, target.bytes), target.memory);
    ++messages_;
    --left;
    --*other.left;
  }

  std::mutex turn_;
  std::condition_variable arrived_;
  std::map<std::tuple<StreamKind, int, int, bool>, std::deque<Posted>> posted_;  // true: sends
  int sizes_that_differ_ = 0;
  int messages_ = 0;
};

class Links final : public DeviceLinks {
 public:
  Links(Exchange& exchange, std::unique_lock<std::mutex>& held, int rank)
      : exchange_(exchange), held_(held), rank_(rank) {}
  void exchange(StreamKind kind, std::span<const DeviceMessage> messages, cuda::Stream,
                const std::string&) override {
    exchange_.meet(held_, rank_, kind, messages);
  }
  void wait(cuda::Stream) override { ++waits_; }
  void abort() noexcept override { ++aborts_; }
  int waits() const { return waits_; }
  int aborts() const { return aborts_; }

 private:
  Exchange& exchange_;
  std::unique_lock<std::mutex>& held_;
  const int rank_;
  int waits_ = 0;
  int aborts_ = 0;
};

struct Outcome {
  Bits bits;
  std::vector<RankStats> stats;
};

template <class Element>
Outcome run_ranks(const Trial& trial, Exchange& exchange) {
  Outcome outcome{{}, std::vector<RankStats>(static_cast<std::size_t>(trial.options.ranks))};
  fake_devices().devices = trial.options.ranks;
  outcome.bits = bits_of_run<Element>(trial, [&](const Ends<Element>& ends) {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < trial.options.ranks; ++rank) {
      ranks.emplace_back([&, rank] {
        std::unique_lock held(exchange.turn());
        Links links(exchange, held, rank);
        try {
          const OverLinks<Element> place(counting_kernels<Element>(), links,
                                         {.rank = rank, .device = rank});
          outcome.stats[static_cast<std::size_t>(rank)] =
              Engine().run(trial.problem, trial.options, ends, place).ranks.front();
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
        EXPECT_EQ(links.waits(), 1);
        EXPECT_EQ(links.aborts(), 0);
      });
    }
  });
  return outcome;
}

template <class Element>
void compare_trials(DType dtype, std::uint64_t seed) {
  Draws draws(seed);
  for (int i = 0; i < repetitions(150); ++i) {
    const Trial trial = counting_trial(draws, dtype);
    Exchange exchange;
    const Outcome outcome = run_ranks<Element>(trial, exchange);
    ASSERT_EQ(outcome.bits, expected_bits<Element>(trial)) << trial.text();
    ASSERT_EQ(exchange.sizes_that_differ(), 0) << trial.text();
    std::int64_t sent = 0, received = 0, messages = 0;
    for (const RankStats& rank : outcome.stats) {
      sent += rank.sent_bytes;
      received += rank.received_bytes;
      messages += rank.sent_messages;
    }
    ASSERT_EQ(sent, received) << trial.text();
    ASSERT_EQ(messages, exchange.messages()) << trial.text();
    ASSERT_EQ(fake_devices().live_bytes, 0);
    ASSERT_EQ(fake_devices().live_handles, 0);
  }
}

TEST(DeviceMessages, count_right_in_random_cases) {
  compare_trials<Half>(DType::f16, 15);
  compare_trials<BFloat16>(DType::bf16, 16);
}

TEST(DeviceMessages, send_what_copies_between_devices_copy) {
  Draws draws(17);
  for (int i = 0; i < repetitions(40); ++i) {
    const Trial trial = counting_trial(draws, DType::f16);
    Exchange exchange;
    const Outcome outcome = run_ranks<Half>(trial, exchange);
    RunSummary copied;
    bits_of_run<Half>(trial, [&](const Ends<Half>& ends) {
      copied = Engine().run(trial.problem, trial.options, ends,
                            OnStreams<Half>(counting_kernels<Half>()));
    });
    for (std::size_t rank = 0; rank < outcome.stats.size(); ++rank) {
      EXPECT_EQ(outcome.stats[rank].sent_bytes, copied.ranks[rank].sent_bytes) << trial.text();
      EXPECT_EQ(outcome.stats[rank].received_messages, copied.ranks[rank].received_messages);
      EXPECT_EQ(outcome.stats[rank].peak_bytes, copied.ranks[rank].peak_bytes);
      EXPECT_EQ(outcome.stats[rank].visits.size(), copied.ranks[rank].visits.size());
    }
  }
}

TEST(DeviceMessages, refuse_ranks_and_devices_that_are_not_there) {
  Draws draws(18);
  const Trial trial = counting_trial(draws, DType::f16);
  fake_devices().devices = 1;
  Exchange exchange;
  std::unique_lock held(exchange.turn());
  Links links(exchange, held, 0);
  const auto run = [&](int rank, int device) {
    bits_of_run<Half>(trial, [&](const Ends<Half>& ends) {
      Engine().run(
          trial.problem, trial.options, ends,
          OverLinks<Half>(counting_kernels<Half>(), links, {.rank = rank, .device = device}));
    });
  };
  EXPECT_THROW(run(trial.options.ranks, 0), Error);
  EXPECT_THROW(run(-1, 0), Error);
  EXPECT_THROW(run(0, 1), Error);
}

/// Whose deadline passes.
class LateLinks : public DeviceLinks {
 public:
  void exchange(StreamKind, std::span<const DeviceMessage>, cuda::Stream,
                const std::string&) override {}
  void wait(cuda::Stream) override {
    throw_environment_error({.where = "rank 0", .actual = "a deadline that passed"});
  }
  void abort() noexcept override {}
};

TEST(DeviceMessagesDeathTest, that_do_not_end_though_they_are_broken_off_leave_what_they_hold) {
  const auto run_late = [] {
    Draws draws(19);
    Trial trial = counting_trial(draws, DType::f16);
    trial.options.ranks = 1;
    fake_devices().has_ended = [](cuda::Stream) { return false; };
    const std::int64_t before = fake_devices().live_bytes;
    LateLinks links;
    try {
      bits_of_run<Half>(trial, [&](const Ends<Half>& ends) {
        Engine().run(trial.problem, trial.options, ends,
                     OverLinks<Half>(counting_kernels<Half>(), links, {.grace_s = 0.05}));
      });
    } catch (const DeviceStuck& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(fake_devices().live_bytes > before ? error.exit_code() : 1);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(run_late(), testing::ExitedWithCode(4),
              "expected an end of what runs there.*none within 0.05 s.*a deadline that passed");
}

}  // namespace
}  // namespace ringlab::ring
