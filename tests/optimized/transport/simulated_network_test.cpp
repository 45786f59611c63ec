// What only the simulator has: one rank at a time, a seed that fixes the run, buffers that bite.
#include <atomic>
#include <limits>
#include <set>

#include "tests/optimized/transport/any_network.h"

namespace ringlab {
namespace {

/// Passes values round a ring; every rank notes when it goes on.
std::pair<std::vector<std::pair<int, int>>, std::int64_t> ring_events(std::uint64_t seed,
                                                                      bool rendezvous) {
  std::vector<std::pair<int, int>> events;  // (rank, hop); one rank runs at a time, so no lock
  constexpr int kRanks = 5;
  const NetworkOptions options{.timeout_s = 1, .rendezvous = rendezvous};
  const NetworkSummary summary = run_simulated(kRanks, seed, options, [&](Communicator& network) {
    for (int hop = 0; hop < 4; ++hop) {
      const int mine = network.rank();
      int theirs = 0;
      const Request out = network.post_send((mine + 1) % kRanks, 0, bytes_of(&mine, 1));
      const Request in =
          network.post_receive((mine + 4) % kRanks, 0, writable_bytes_of(&theirs, 1));
      network.wait(in);
      network.wait(out);
      events.emplace_back(mine, hop);
    }
  });
  return {events, summary.virtual_time};
}

TEST(SimulatedNetwork, the_same_seed_gives_the_same_run) {
  for (const bool rendezvous : {false, true}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto first = ring_events(seed, rendezvous);
      EXPECT_EQ(ring_events(seed, rendezvous), first);
      EXPECT_GT(first.second, 0);
    }
  }
}

TEST(SimulatedNetwork, different_seeds_give_different_orders) {
  std::set<std::vector<std::pair<int, int>>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) orders.insert(ring_events(seed, false).first);
  EXPECT_GE(orders.size(), 19u);
}

TEST(SimulatedNetwork, exactly_one_rank_runs_at_any_moment) {
  std::atomic<int> running = 0;
  run_simulated(6, 11, {}, [&](Communicator& network) {
    for (int round = 0; round < 10; ++round) {
      EXPECT_EQ(running.fetch_add(1), 0);
      const int mine = network.rank();
      int theirs = 0;
      const Request in = network.post_receive(5 - mine, round, writable_bytes_of(&theirs, 1));
      const Request out = network.post_send(5 - mine, round, bytes_of(&mine, 1));
      EXPECT_EQ(running.fetch_sub(1), 1);
      network.wait(in);
      network.wait(out);
      EXPECT_EQ(theirs, 5 - mine);
    }
  });
}

TEST(SimulatedNetwork, messages_of_different_tags_overtake_each_other) {
  bool first_tag_first = false, second_tag_first = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    run_simulated(2, seed, {}, [&](Communicator& network) {
      int values[2] = {1, 2};
      if (network.rank() == 0) {
        const Request a = network.post_send(1, 0, bytes_of(&values[0], 1));
        const Request b = network.post_send(1, 1, bytes_of(&values[1], 1));
        network.wait(a);
        network.wait(b);
        return;
      }
      const Request a = network.post_receive(0, 0, writable_bytes_of(&values[0], 1));
      const Request b = network.post_receive(0, 1, writable_bytes_of(&values[1], 1));
      network.wait(a);
      (values[1] == 2 ? second_tag_first : first_tag_first) = true;
      network.wait(b);
    });
  }
  EXPECT_TRUE(first_tag_first);
  EXPECT_TRUE(second_tag_first);
}

TEST(SimulatedNetwork, a_receive_buffer_holds_poison_until_the_message_arrives) {
  run_simulated(2, 5, {}, [](Communicator& network) {
    double value = 1.0;
    if (network.rank() == 0) {
      network.wait(network.post_send(1, 0, bytes_of(&value, 1)));
      return;
    }
    value = 3.0;
    const Request in = network.post_receive(0, 0, writable_bytes_of(&value, 1));
    EXPECT_NE(value, value) << "not NaN";
    network.wait(in);
    EXPECT_EQ(value, 1.0);
  });
}

TEST(SimulatedNetwork, overwriting_a_send_buffer_before_its_wait_corrupts_the_message) {
  for (const bool rendezvous : {false, true}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      run_simulated(2, seed, {.timeout_s = 1, .rendezvous = rendezvous}, [](Communicator& network) {
        int value = 1;
        if (network.rank() == 0) {
          const Request out = network.post_send(1, 0, bytes_of(&value, 1));
          value = 2;
          network.wait(out);
        } else {
          network.wait(network.post_receive(0, 0, writable_bytes_of(&value, 1)));
          EXPECT_EQ(value, 2);
        }
      });
    }
  }
}

TEST(SimulatedNetwork, a_ring_that_reuses_its_send_buffer_early_is_caught_on_most_seeds) {
  int caught = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    bool wrong = false;
    run_simulated(3, seed, {}, [&](Communicator& network) {
      int held = network.rank();
      for (int hop = 1; hop < 3; ++hop) {
        int arriving = -1;
        const Request out = network.post_send((network.rank() + 1) % 3, 0, bytes_of(&held, 1));
        const Request in =
            network.post_receive((network.rank() + 2) % 3, 0, writable_bytes_of(&arriving, 1));
        network.wait(in);
        held = arriving;  // too early: the send of `held` has not been waited for
        network.wait(out);
        wrong = wrong || held != (network.rank() + 3 - hop) % 3;
      }
    });
    caught += wrong;
  }
  EXPECT_GE(caught, 50);
}

TEST(SimulatedNetwork, a_ring_that_reads_before_waiting_is_caught_on_most_seeds) {
  int caught = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    bool wrong = false;
    run_simulated(2, seed, {}, [&](Communicator& network) {
      const int mine = network.rank();
      int theirs = 0;
      const Request in = network.post_receive(1 - mine, 0, writable_bytes_of(&theirs, 1));
      const Request out = network.post_send(1 - mine, 0, bytes_of(&mine, 1));
      network.wait(out);
      wrong = wrong || theirs != 1 - mine;
      network.wait(in);
    });
    caught += wrong;
  }
  EXPECT_GE(caught, 50);
}

TEST(SimulatedNetwork, a_send_left_unfinished_by_a_body_is_an_error_of_its_receiver) {
  const auto body = [](Communicator& n) {
    const int value = 1;
    if (n.rank() == 0) {
      n.post_send(1, 0, bytes_of(&value, 1));
    } else {
      receive_ints(n, 0, 0, 1);
    }
  };
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const AnyNetwork network{.name = "", .simulated = true, .seed = seed};
    const std::string text = network.error_of(2, body).what();
    EXPECT_NE(text.find("rank 0 ended without waiting for this send"), std::string::npos) << text;
  }
}

TEST(SimulatedNetwork, a_later_message_of_a_channel_may_be_complete_before_an_earlier_one) {
  int overtaken = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    run_simulated(2, seed, {}, [&](Communicator& n) {
      int values[2] = {1, 2};
      Request requests[2];
      for (int i = 0; i < 2; ++i) {
        requests[i] = n.rank() == 0 ? n.post_send(1, 0, bytes_of(&values[i], 1))
                                    : n.post_receive(0, 0, writable_bytes_of(&values[i], 1));
      }
      n.wait(requests[1]);
      overtaken += n.rank() == 1 && values[0] != 1;
      n.wait(requests[0]);
      EXPECT_EQ(values[0], 1);
      EXPECT_EQ(values[1], 2);
    });
  }
  EXPECT_GE(overtaken, 10);
}

TEST(SimulatedNetwork, a_receive_of_a_rank_that_has_ended_takes_no_rendezvous_send) {
  const AnyNetwork network{.name = "", .simulated = true, .rendezvous = true, .seed = 1};
  const auto body = [](Communicator& n) {
    int value = 0;
    if (n.rank() == 1) {
      n.post_receive(0, 7, writable_bytes_of(&value, 1));
      return;
    }
    for (int i = 0; i < 100; ++i) {  // at least a tick each: rank 1 has long ended
      const Request out = n.post_send(0, 0, {});
      n.wait(n.post_receive(0, 0, {}));
      n.wait(out);
    }
    send_ints(n, 1, 7, {1});
  };
  const std::string text = network.error_of(2, body).what();
  EXPECT_NE(text.find("rank 1 had ended without receiving it"), std::string::npos) << text;
}

}  // namespace
}  // namespace ringlab
