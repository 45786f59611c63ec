// What every transport does for wrong programs and dying ranks: it ends soon, and says why.
#include <chrono>
#include <stdexcept>

#include "tests/optimized/transport/any_network.h"

namespace ringlab {
namespace {

class TransportFailures : public testing::TestWithParam<AnyNetwork> {};
INSTANTIATE_TEST_SUITE_P(Networks, TransportFailures, testing::ValuesIn(every_network()),
                         network_name);

void expect_text(const Error& error, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) {
    EXPECT_NE(std::string(error.what()).find(piece), std::string::npos)
        << "\"" << piece << "\" is missing in: " << error.what();
  }
}

TEST_P(TransportFailures, a_receive_of_another_size_names_both_sizes) {
  for (const int wanted : {1, 3, 0}) {
    const Error error = GetParam().error_of(2, [&](Communicator& network) {
      if (network.rank() == 0) {
        send_ints(network, 1, 4, {1, 2});
      } else {
        receive_ints(network, 0, 4, wanted);
      }
    });
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    expect_text(error, {"rank 1", "receive tag 4 from rank 0",
                        std::to_string(4 * wanted) + " bytes", "8 bytes"});
  }
}

TEST_P(TransportFailures, receive_receive_is_a_deadlock_that_says_who_waits_for_whom) {
  const Error error = GetParam().error_of(2, [](Communicator& network) {
    const int peer = 1 - network.rank();
    receive_ints(network, peer, 3, 1);
    send_ints(network, peer, 3, {1});
  });
  EXPECT_EQ(error.kind(), ErrorKind::environment);
  expect_text(error, {"deadlock", "rank 0 waits to receive tag 3 from rank 1",
                      "rank 1 waits to receive tag 3 from rank 0"});
}

TEST_P(TransportFailures, a_deadlock_says_where_two_ends_have_other_tags) {
  const Error error = GetParam().error_of(2, [](Communicator& network) {
    const int peer = 1 - network.rank(), sent = 0;
    network.post_send(peer, 4, bytes_of(&sent, 1));
    receive_ints(network, peer, 3, 1);
  });
  expect_text(error, {"rank 0 waits to receive tag 3 from rank 1",
                      "rank 1 has posted to send tag 4 to rank 0", "the same tag?"});
}

TEST_P(TransportFailures, send_then_receive_deadlocks_exactly_when_nothing_is_buffered) {
  const auto body = [](Communicator& network) {
    const int ranks = network.ranks();
    send_ints(network, (network.rank() + 1) % ranks, 0, {network.rank()});
    receive_ints(network, (network.rank() + ranks - 1) % ranks, 0, 1);
  };
  for (int ranks = 1; ranks <= 5; ++ranks) {
    if (GetParam().rendezvous) {
      expect_text(GetParam().error_of(ranks, body),
                  {"deadlock", "rank 0 waits to send tag 0 to rank " + std::to_string(1 % ranks)});
    } else {
      EXPECT_NO_THROW(GetParam().run(ranks, body));
    }
  }
}

TEST_P(TransportFailures, a_deadlock_of_some_ranks_is_found_after_the_others_have_ended) {
  const Error error = GetParam().error_of(4, [](Communicator& network) {
    if (network.rank() >= 2) receive_ints(network, 5 - network.rank(), 1, 1);
  });
  expect_text(error, {"deadlock", "rank 2 waits to receive tag 1 from rank 3"});
  EXPECT_EQ(std::string(error.what()).find("rank 0 waits"), std::string::npos);
}

TEST_P(TransportFailures, a_message_from_a_rank_that_ended_is_not_waited_for) {
  const Error error = GetParam().error_of(2, [](Communicator& network) {
    if (network.rank() == 1) receive_ints(network, 0, 9, 1);
  });
  EXPECT_EQ(error.kind(), ErrorKind::environment);
  expect_text(error, {"rank 1", "receive tag 9 from rank 0", "ended without sending"});
}

TEST_P(TransportFailures, an_exception_in_one_rank_wakes_the_others_long_before_the_deadline) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> told(4);
  const auto body = [&](Communicator& network) {
    if (network.rank() == 2) throw std::runtime_error("the disk is on fire");
    try {
      receive_ints(network, (network.rank() + 1) % 4, 5, 1);
    } catch (const Error& survivor) {
      told[static_cast<std::size_t>(network.rank())] = survivor.what();
      throw;
    }
  };
  const Error error = GetParam().error_of(4, body, 300);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(error.kind(), ErrorKind::environment);
  expect_text(error, {"rank 2", "the disk is on fire"});
  for (const std::size_t rank : {0, 1, 3}) {
    EXPECT_NE(told[rank].find("rank 2 failed"), std::string::npos) << told[rank];
    EXPECT_NE(told[rank].find("rank " + std::to_string(rank)), std::string::npos) << told[rank];
  }
}

TEST_P(TransportFailures, the_error_of_a_body_keeps_its_kind_and_gains_its_rank) {
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::input, ErrorKind::environment}) {
    const Error error = GetParam().error_of(3, [&](Communicator& network) {
      if (network.rank() == 1) {
        throw Error(kind, {.where = "tile", .expected = "1", .actual = "0"});
      }
      receive_ints(network, 1, 0, 1);
    });
    EXPECT_EQ(error.kind(), kind);
    EXPECT_EQ(std::string(error.what()), "rank 1, tile: expected 1, found 0");
  }
}

TEST_P(TransportFailures, an_exception_that_is_no_exception_class_is_named_too) {
  expect_text(GetParam().error_of(1, [](Communicator&) { throw 7; }), {"rank 0", "unknown"});
}

TEST_P(TransportFailures, a_failure_that_a_body_swallows_still_ends_the_run) {
  const Error error = GetParam().error_of(2, [](Communicator& network) {
    try {
      receive_ints(network, 1 - network.rank(), 0, 1);
    } catch (const Error&) {
      EXPECT_THROW(network.post_send(0, 0, {}), Error);
      EXPECT_THROW(network.post_receive(0, 0, {}), Error);
    }
  });
  expect_text(error, {"deadlock"});
}

TEST_P(TransportFailures, bad_peers_and_tags_are_usage_errors) {
  const auto kind_of = [&](const RankBody& body) { return GetParam().error_of(2, body).kind(); };
  EXPECT_EQ(kind_of([](Communicator& n) { n.post_send(2, 0, {}); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([](Communicator& n) { n.post_send(-1, 0, {}); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([](Communicator& n) { n.post_send(0, -1, {}); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([](Communicator& n) { n.post_receive(2, 0, {}); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([](Communicator& n) { n.post_receive(0, -7, {}); }), ErrorKind::usage);
  expect_text(GetParam().error_of(2, [](Communicator& n) { n.post_send(2, 0, {}); }),
              {"rank", "post_send", "a peer in 0 … 1", "rank 2"});
  expect_text(GetParam().error_of(2, [](Communicator& n) { n.post_receive(0, -7, {}); }),
              {"rank", "post_receive", "a tag in 0 … ", "tag -7"});
}

TEST_P(TransportFailures, a_request_is_waited_for_once_and_by_its_own_rank) {
  const auto kind_of = [&](const RankBody& body) { return GetParam().error_of(2, body).kind(); };
  EXPECT_EQ(kind_of([](Communicator& n) { n.wait(Request{}); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([](Communicator& n) {
              const Request out = n.post_send(n.rank(), 0, {});
              const Request in = n.post_receive(n.rank(), 0, {});
              n.wait(in);
              n.wait(out);
              n.wait(in);
            }),
            ErrorKind::usage);
  EXPECT_EQ(kind_of([](Communicator& n) { n.wait({n.post_send(0, 0, {}).id + 1}); }),
            ErrorKind::usage);
}

TEST_P(TransportFailures, fewer_than_one_rank_is_a_usage_error) {
  for (const int ranks : {0, -3}) {
    EXPECT_EQ(GetParam().error_of(ranks, [](Communicator&) {}).kind(), ErrorKind::usage);
  }
}

TEST_P(TransportFailures, messages_nobody_received_are_counted) {
  const NetworkSummary summary = GetParam().run(2, [](Communicator& network) {
    const int value = 1;
    if (network.rank() == 0) {
      network.post_send(1, 0, bytes_of(&value, 1));
      network.post_send(1, 1, bytes_of(&value, 1));
      network.post_send(0, 2, bytes_of(&value, 1));
    }
  });
  EXPECT_EQ(summary.leftover_messages, 3);
}

TEST_P(TransportFailures, receives_left_open_by_a_body_write_nowhere) {
  // The buffer dies with the body of rank 1 while the message is still on its way.
  const NetworkSummary summary = GetParam().run(2, [](Communicator& network) {
    std::vector<int> buffer(1000, network.rank());
    const std::int64_t count = std::ssize(buffer);
    if (network.rank() == 0) {
      const Request out = network.post_send(1, 0, bytes_of(buffer.data(), count));
      send_ints(network, 1, 1, {1});
      network.wait(out);
    } else {
      receive_ints(network, 0, 1, 1);
      network.post_receive(0, 0, writable_bytes_of(buffer.data(), count));
    }
  });
  EXPECT_EQ(summary.leftover_messages, 1);
}

TEST_P(TransportFailures, a_network_can_be_formed_again_after_a_failure) {
  const auto ring = [](Communicator& network) {
    const int mine = network.rank();
    int theirs = -1;
    const Request in = network.post_receive((mine + 3) % 4, 0, writable_bytes_of(&theirs, 1));
    const Request out = network.post_send((mine + 1) % 4, 0, bytes_of(&mine, 1));
    network.wait(in);
    network.wait(out);
    EXPECT_EQ(theirs, (mine + 3) % 4);
  };
  for (int victim = 0; victim < 4; ++victim) {
    const Error error = GetParam().error_of(4, [&](Communicator& network) {
      if (network.rank() == victim) throw std::runtime_error("killed");
      ring(network);
    });
    expect_text(error, {"rank " + std::to_string(victim), "killed"});
    EXPECT_NO_THROW(GetParam().run(4, ring));
  }
}

}  // namespace
}  // namespace ringlab
