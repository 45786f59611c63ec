// What the MPI transport does for wrong programs and ranks that stay away: all ranks are told,
// soon, and whom to blame. Every process runs these bodies; expectations hold on each of them.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/optimized/transport/mpi_networks.h"

namespace ringlab {
namespace {

constexpr double kTimeout = 2;
constexpr double kGrace = 5;
const MpiOptions kImpatient{.timeout_s = kTimeout, .grace_s = kGrace};
// Seconds that two cores may add while nine processes and others take turns on them.
constexpr double kScheduling = 20;

void stay_away(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Answers questions, and does nothing else until the job has failed.
void stay_away_until_it_fails(mpi::MpiCommunicator& network) {
  constexpr int kLooks = 10'000;  // 100 s
  for (int i = 0; i < kLooks; ++i) {
    try {
      network.check_others("stay away");
    } catch (const RankError&) {
      return;
    }
    stay_away(0.01);
  }
  ADD_FAILURE() << "the job has not failed";
}

RankFailure failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const RankError& error) {
    return error.failure();
  }
  ADD_FAILURE() << "no RankError";
  return {};
}

TEST(MpiFailures, the_rank_at_the_end_of_the_waiting_chain_is_blamed_by_everybody) {
  for (const int victim : {0, 1, 3}) {
    run_on_job(4, kImpatient, [&](mpi::MpiCommunicator& network) {
      if (network.rank() == victim) return stay_away_until_it_fails(network);
      const RankFailure failure =
          failure_of([&] { receive_ints(network, (network.rank() + 1) % 4, 0, 1); });
      EXPECT_EQ(failure.suspect, victim) << failure.reason;
      EXPECT_EQ(failure.rank, network.rank());
      EXPECT_NE(failure.operation.find("receive tag 0 from rank"), std::string::npos);
      EXPECT_LT(failure.elapsed_s, kTimeout + kGrace + kScheduling);
    });
  }
}

TEST(MpiFailures, ranks_that_wait_for_each_other_are_a_deadlock_and_nobodys_fault) {
  run_on_job(3, kImpatient, [](mpi::MpiCommunicator& network) {
    const RankFailure failure =
        failure_of([&] { receive_ints(network, (network.rank() + 1) % 3, 0, 1); });
    EXPECT_EQ(failure.suspect, -1);
    EXPECT_NE(failure.reason.find("wait for each other"), std::string::npos) << failure.reason;
  });
}

TEST(MpiFailures, a_message_of_another_size_names_the_sender_whether_longer_or_shorter) {
  for (const std::int64_t piece_bytes : {std::int64_t{1} << 30, std::int64_t{8}}) {
    const MpiOptions options{.timeout_s = 60, .piece_bytes = piece_bytes};
    for (const int wanted : {0, 1, 3, 4, 9}) {
      run_on_job(2, options, [&](mpi::MpiCommunicator& network) {
        if (network.rank() == 0) {
          send_ints(network, 1, 4, {1, 2, 3, 4, 5});
          return;
        }
        const RankFailure failure = failure_of([&] { receive_ints(network, 0, 4, wanted); });
        EXPECT_EQ(failure.suspect, 0);
        EXPECT_NE(failure.reason.find("disagree about the size"), std::string::npos)
            << failure.reason;
        EXPECT_NE(failure.operation.find(std::to_string(4 * wanted) + " bytes"), std::string::npos);
      });
    }
  }
}

TEST(MpiFailures, an_abort_reaches_every_waiting_rank_long_before_its_deadline) {
  const MpiOptions patient{.timeout_s = 60};
  run_on_job(5, patient, [](mpi::MpiCommunicator& network) {
    if (network.rank() == 2) {
      network.abort("the disk is on fire");
      network.abort("twice changes nothing");
      return;
    }
    const RankFailure failure =
        failure_of([&] { receive_ints(network, (network.rank() + 1) % 5, 0, 1); });
    EXPECT_EQ(failure.suspect, 2);
    EXPECT_NE(failure.reason.find("rank 2 failed (the disk is on fire)"), std::string::npos);
    EXPECT_LT(failure.elapsed_s, 10);
    EXPECT_THROW(network.post_send(0, 0, {}), RankError);
    EXPECT_THROW(network.post_receive(0, 0, {}), RankError);
  });
}

// Both of a message that lies ready whole and of one that is carried in parts.
TEST(MpiFailures, buffers_that_a_failing_rank_lets_go_of_are_touched_no_more) {
  constexpr std::byte kFree{0x55};
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{64} << 20}) {
    for (const bool message_comes_first : {false, true}) {
      run_on_job(2, {.timeout_s = 200}, [&](mpi::MpiCommunicator& network) {
        std::vector<std::byte> buffer(bytes, std::byte{1});
        if (network.rank() == 1) {
          if (!message_comes_first) stay_away(0.3);
          network.post_send(0, 3, buffer);
          EXPECT_THROW(receive_ints(network, 0, 4, 1), RankError);
          return;
        }
        if (message_comes_first) stay_away(0.3);
        try {
          let_go_on_error(network, [&] {
            network.post_receive(1, 3, buffer);
            throw std::bad_alloc();
          });
        } catch (const std::bad_alloc&) {
          std::ranges::fill(buffer, kFree);  // as if somebody else had it now
        }
        stay_away(0.6);
        network.abort("no memory");
        EXPECT_EQ(std::ranges::count(buffer, kFree), std::ssize(buffer));
      });
    }
  }
}

// What it sends is half-way, so that MPI has to be left before anybody could say more.
TEST(MpiFailures, a_rank_that_lets_go_of_a_message_half_way_says_why) {
  run_on_job(2, {.timeout_s = 200}, [&](mpi::MpiCommunicator& network) {
    if (network.rank() == 1) {
      const std::vector<std::byte> large(std::size_t{64} << 20);
      EXPECT_THROW(let_go_on_error(network,
                                   [&] {
                                     network.post_send(0, 3, large);
                                     throw std::runtime_error("the disk is on fire");
                                   }),
                   std::runtime_error);
      return;
    }
    const RankFailure failure = failure_of([&] { receive_ints(network, 1, 4, 1); });
    EXPECT_EQ(failure.suspect, 1);
    EXPECT_NE(failure.reason.find("rank 1 failed (the disk is on fire)"), std::string::npos)
        << failure.reason;
  });
}

TEST(MpiFailures, a_rank_that_is_late_but_within_the_deadline_is_no_error) {
  run_on_job(3, {.timeout_s = 30, .grace_s = kGrace}, [](mpi::MpiCommunicator& network) {
    if (network.rank() == 1) stay_away(0.4);
    const int mine = network.rank();
    const Request out = network.post_send((mine + 1) % 3, 0, bytes_of(&mine, 1));
    EXPECT_EQ(receive_ints(network, (mine + 2) % 3, 0, 1), std::vector<int>{(mine + 2) % 3});
    network.wait(out);
    network.finish();
  });
}

// Rank 0 waits for rank 1 longer than its timeout, and rank 1 for rank 2, which is always at work.
TEST(MpiFailures, ranks_that_get_on_within_the_timeout_are_waited_for) {
  constexpr int kMessages = 30;
  run_on_job(3, {.timeout_s = kTimeout, .grace_s = kGrace}, [](mpi::MpiCommunicator& network) {
    if (network.rank() == 0) receive_ints(network, 1, 1, 1);
    for (int i = 0; i < kMessages; ++i) {
      if (network.rank() == 1) receive_ints(network, 2, 0, 1);
      if (network.rank() != 2) continue;
      stay_away(0.1);
      send_ints(network, 1, 0, {i});
    }
    if (network.rank() == 1) send_ints(network, 0, 1, {7});
    network.finish();
  });
}

TEST(MpiFailures, a_rank_at_work_answers_and_is_not_blamed_for_one_that_is_not) {
  run_on_job(4, kImpatient, [](mpi::MpiCommunicator& network) {
    if (network.rank() == 0) {  // computes, and sends in time for itself
      stay_away(0.1 * kTimeout);
      send_ints(network, 1, 0, {1});
    }
    if (network.rank() == 3) return stay_away_until_it_fails(network);
    if (network.rank() == 1) receive_ints(network, 0, 0, 1);
    EXPECT_EQ(failure_of([&] { receive_ints(network, 3, 1, 1); }).suspect, 3);
  });
}

TEST(MpiFailures, a_rank_at_work_has_a_last_word_when_another_one_fails) {
  std::mutex mutex;
  std::vector<std::string> said;
  const MpiOptions options{.timeout_s = 60, .last_word = [&](const Error& error) {
                             const std::lock_guard lock(mutex);
                             said.emplace_back(error.what());
                           }};
  run_on_job(3, options, [&](mpi::MpiCommunicator& network) {
    if (network.rank() == 0) {
      receive_ints(network, 2, 1, 1);
      return network.abort("the disk is on fire");
    }
    const auto has_spoken = [&] {
      const std::lock_guard lock(mutex);
      return !said.empty();
    };
    for (int i = 0; network.rank() == 1 && i < 10'000 && !has_spoken(); ++i) stay_away(0.01);
    const RankFailure failure = failure_of([&] {
      if (network.rank() == 2) send_ints(network, 0, 1, {1});  // and waits from then on
      receive_ints(network, 0, 0, 1);
    });
    EXPECT_EQ(failure.suspect, 0);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(said.size(), network.rank() == 1 ? 1u : 0u) << "who waits, throws";
    for (const std::string& word : said) {
      EXPECT_NE(word.find("the disk is on fire"), std::string::npos) << word;
      EXPECT_NE(word.find("Suspect: rank 0"), std::string::npos) << word;
    }
  });
}

TEST(MpiFailures, a_rank_that_never_comes_to_the_end_is_named) {
  run_on_job(3, kImpatient, [](mpi::MpiCommunicator& network) {
    if (network.rank() == 2) return stay_away_until_it_fails(network);
    EXPECT_EQ(failure_of([&] { network.finish(); }).suspect, 2);
  });
}

TEST(MpiFailures, a_rank_that_waits_for_one_that_has_finished_says_so) {
  run_on_job(2, kImpatient, [](mpi::MpiCommunicator& network) {
    if (network.rank() == 0) {
      EXPECT_EQ(failure_of([&] { network.finish(); }).rank, 0);
    } else {
      EXPECT_EQ(failure_of([&] { receive_ints(network, 0, 0, 1); }).rank, 1);
    }
  });
}

TEST(MpiFailures, bad_peers_tags_and_requests_are_usage_errors) {
  const auto kind_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::input;
  };
  run_on_job(2, {}, [&](mpi::MpiCommunicator& network) {
    for (const int peer : {-1, 2}) {
      EXPECT_EQ(kind_of([&] { network.post_send(peer, 0, {}); }), ErrorKind::usage);
      EXPECT_EQ(kind_of([&] { network.post_receive(peer, 0, {}); }), ErrorKind::usage);
    }
    EXPECT_EQ(kind_of([&] { network.post_send(0, -1, {}); }), ErrorKind::usage);
    EXPECT_EQ(kind_of([&] { network.post_receive(0, -7, {}); }), ErrorKind::usage);
    EXPECT_EQ(kind_of([&] { network.wait(Request{}); }), ErrorKind::usage);
    const Request out = network.post_send(network.rank(), 0, {});
    const Request in = network.post_receive(network.rank(), 0, {});
    EXPECT_EQ(kind_of([&] { network.wait({in.id + 1}); }), ErrorKind::usage);
    network.wait(in);
    network.wait(out);
    EXPECT_EQ(kind_of([&] { network.wait(in); }), ErrorKind::usage);
  });
}

TEST(MpiFailures, a_new_communicator_works_after_every_kind_of_failure) {
  for (int victim = 0; victim < 3; ++victim) {
    run_on_job(3, {.timeout_s = 30}, [&](mpi::MpiCommunicator& network) {
      if (network.rank() == victim) return network.abort("planned");
      EXPECT_EQ(failure_of([&] { receive_ints(network, victim, 0, 1); }).suspect, victim);
    });
    run_on_job(3, {.timeout_s = 30}, [](mpi::MpiCommunicator& network) { network.finish(); });
  }
}

}  // namespace
}  // namespace ringlab
