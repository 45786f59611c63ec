// What every transport does for correct programs.
#include <numeric>

#include "tests/optimized/transport/any_network.h"

namespace ringlab {
namespace {

class TransportContract : public testing::TestWithParam<AnyNetwork> {};
INSTANTIATE_TEST_SUITE_P(Networks, TransportContract, testing::ValuesIn(every_network()),
                         network_name);

TEST_P(TransportContract, every_rank_knows_its_number_and_the_number_of_ranks) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    GetParam().run(ranks, [&](Communicator& network) {
      EXPECT_EQ(network.ranks(), ranks);
      const int mine = network.rank();
      const Request out = network.post_send(0, 0, bytes_of(&mine, 1));
      for (int rank = 0; rank < (mine == 0 ? ranks : 0); ++rank) {
        EXPECT_EQ(receive_ints(network, rank, 0, 1), std::vector<int>{rank});
      }
      network.wait(out);
    });
  }
}

TEST_P(TransportContract, a_ring_shift_moves_every_block_to_every_rank) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    GetParam().run(ranks, [&](Communicator& network) {
      const int next = (network.rank() + 1) % ranks;
      const int previous = (network.rank() + ranks - 1) % ranks;
      std::vector<int> held = {network.rank(), 100 + network.rank()};
      for (int hop = 0; hop < ranks; ++hop) {
        const int owner = (network.rank() + ranks - hop) % ranks;
        ASSERT_EQ(held, (std::vector<int>{owner, 100 + owner}));
        std::vector<int> arriving(2);
        const Request in = network.post_receive(previous, 7, writable_bytes_of(arriving.data(), 2));
        const Request out = network.post_send(next, 7, bytes_of(held.data(), 2));
        network.wait(in);
        network.wait(out);
        held = arriving;
      }
    });
  }
}

TEST_P(TransportContract, waiting_for_the_receive_first_or_the_send_first_are_both_fine) {
  for (const bool receive_first : {false, true}) {
    GetParam().run(3, [&](Communicator& network) {
      const int mine = network.rank();
      int theirs = -1;
      const Request out = network.post_send((mine + 1) % 3, 0, bytes_of(&mine, 1));
      const Request in = network.post_receive((mine + 2) % 3, 0, writable_bytes_of(&theirs, 1));
      network.wait(receive_first ? in : out);
      network.wait(receive_first ? out : in);
      EXPECT_EQ(theirs, (mine + 2) % 3);
    });
  }
}

TEST_P(TransportContract, messages_of_one_pair_and_tag_arrive_in_order) {
  GetParam().run(2, [](Communicator& network) {
    constexpr int kCount = 50;
    std::vector<int> values(kCount);
    std::vector<Request> requests;
    if (network.rank() == 0) std::iota(values.begin(), values.end(), 0);
    for (int& value : values) {
      requests.push_back(network.rank() == 0
                             ? network.post_send(1, 3, bytes_of(&value, 1))
                             : network.post_receive(0, 3, writable_bytes_of(&value, 1)));
    }
    // Waiting in another order than posting changes nothing.
    for (std::size_t i = requests.size(); i-- > 0;) network.wait(requests[i]);
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i);
  });
}

TEST_P(TransportContract, tags_do_not_mix) {
  GetParam().run(2, [](Communicator& network) {
    int values[3] = {10, 11, 12};
    std::vector<Request> requests;
    if (network.rank() == 0) {
      for (int tag = 0; tag < 3; ++tag) {
        requests.push_back(network.post_send(1, tag, bytes_of(&values[tag], 1)));
      }
    } else {
      for (int tag = 2; tag >= 0; --tag) {
        requests.push_back(network.post_receive(0, tag, writable_bytes_of(&values[tag], 1)));
      }
    }
    for (const Request request : requests) network.wait(request);
    EXPECT_EQ(values[0], 10);
    EXPECT_EQ(values[1], 11);
    EXPECT_EQ(values[2], 12);
  });
}

TEST_P(TransportContract, everybody_can_talk_to_everybody_and_to_itself) {
  for (const int ranks : {1, 2, 5, 9}) {
    GetParam().run(ranks, [&](Communicator& network) {
      std::vector<int> out(static_cast<std::size_t>(ranks));
      std::vector<int> in(out.size(), -1);
      std::vector<Request> requests;
      for (int peer = 0; peer < ranks; ++peer) {
        const auto i = static_cast<std::size_t>(peer);
        out[i] = 100 * network.rank() + peer;
        requests.push_back(network.post_send(peer, 0, bytes_of(&out[i], 1)));
        requests.push_back(network.post_receive(peer, 0, writable_bytes_of(&in[i], 1)));
      }
      for (const Request request : requests) network.wait(request);
      for (int peer = 0; peer < ranks; ++peer) {
        EXPECT_EQ(in[static_cast<std::size_t>(peer)], 100 * peer + network.rank());
      }
    });
  }
}

TEST_P(TransportContract, empty_messages_are_messages) {
  const NetworkSummary summary = GetParam().run(2, [](Communicator& network) {
    if (network.rank() == 0) {
      network.wait(network.post_send(1, 0, {}));
      send_ints(network, 1, 0, {5});
    } else {
      network.wait(network.post_receive(0, 0, {}));
      EXPECT_EQ(receive_ints(network, 0, 0, 1), std::vector<int>{5});
    }
  });
  EXPECT_EQ(summary.traffic[1].received_messages, 2);
  EXPECT_EQ(summary.traffic[1].received_bytes, 4);
}

TEST_P(TransportContract, large_messages_arrive_whole) {
  constexpr int kCount = 1 << 20;
  GetParam().run(2, [&](Communicator& network) {
    if (network.rank() == 0) {
      std::vector<int> values(kCount);
      std::iota(values.begin(), values.end(), 17);
      send_ints(network, 1, 0, values);
    } else {
      const std::vector<int> values = receive_ints(network, 0, 0, kCount);
      for (int i = 0; i < kCount; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], 17 + i);
    }
  });
}

TEST_P(TransportContract, a_send_buffer_may_be_reused_after_its_wait) {
  GetParam().run(2, [](Communicator& network) {
    if (network.rank() == 0) {
      int value = 1;
      network.wait(network.post_send(1, 0, bytes_of(&value, 1)));
      value = 2;
      network.wait(network.post_send(1, 0, bytes_of(&value, 1)));
    } else {
      EXPECT_EQ(receive_ints(network, 0, 0, 1), std::vector<int>{1});
      EXPECT_EQ(receive_ints(network, 0, 0, 1), std::vector<int>{2});
    }
  });
}

TEST_P(TransportContract, traffic_counts_payload_bytes_and_messages) {
  const NetworkSummary summary = GetParam().run(3, [](Communicator& network) {
    if (network.rank() == 0) {
      send_ints(network, 1, 0, {1, 2, 3});
      send_ints(network, 2, 0, {4});
      EXPECT_EQ(network.traffic().sent_bytes, 16);
    } else {
      receive_ints(network, 0, 0, network.rank() == 1 ? 3 : 1);
    }
  });
  ASSERT_EQ(summary.traffic.size(), 3u);
  EXPECT_EQ(summary.traffic[0].sent_bytes, 16);
  EXPECT_EQ(summary.traffic[0].sent_messages, 2);
  EXPECT_EQ(summary.traffic[0].received_messages, 0);
  EXPECT_EQ(summary.traffic[1].received_bytes, 12);
  EXPECT_EQ(summary.traffic[1].received_messages, 1);
  EXPECT_EQ(summary.traffic[2].received_bytes, 4);
  EXPECT_EQ(summary.leftover_messages, 0);
}

TEST_P(TransportContract, random_traffic_between_many_ranks_arrives_unchanged) {
  constexpr int kRanks = 6;
  constexpr int kRounds = 8;
  GetParam().run(kRanks, [](Communicator& network) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::vector<int>> out(kRanks), in(kRanks);
      std::vector<Request> requests;
      for (int peer = 0; peer < kRanks; ++peer) {
        const auto i = static_cast<std::size_t>(peer);
        const auto size = [round](int from, int to) {
          return (from * 7 + to * 3 + round * 5) % 11;
        };
        out[i].assign(static_cast<std::size_t>(size(network.rank(), peer)), round + peer);
        in[i].resize(static_cast<std::size_t>(size(peer, network.rank())));
        requests.push_back(network.post_receive(
            peer, round % 3, writable_bytes_of(in[i].data(), std::ssize(in[i]))));
        requests.push_back(
            network.post_send(peer, round % 3, bytes_of(out[i].data(), std::ssize(out[i]))));
      }
      for (const Request request : requests) network.wait(request);
      for (const std::vector<int>& values : in) {
        for (const int value : values) ASSERT_EQ(value, round + network.rank());
      }
    }
  });
}

}  // namespace
}  // namespace ringlab
