// What only free-running threads have: deadlines in wall time.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <future>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "reference/core/machine/machine_error.h"
#include "tests/optimized/transport/any_network.h"
#include "tests/repetitions.h"

namespace ringlab {
namespace {

using namespace std::chrono_literals;

/// The error of two ranks with a deadline of 0.1 s: rank 1 does `work`, and rank 0 stays away until
/// that has failed.
std::string error_with_a_stalled_peer(const AnyNetwork& network,
                                      const std::function<void(Communicator&)>& work) {
  std::promise<void> failed;
  const auto body = [&](Communicator& n) {
    if (n.rank() == 0) {
      EXPECT_EQ(failed.get_future().wait_for(100s), std::future_status::ready);
      return;
    }
    try {
      work(n);
    } catch (...) {
      failed.set_value();
      throw;
    }
  };
  return network.error_of(2, body, 0.1).what();
}

TEST(ThreadNetwork, a_stalled_peer_is_an_error_at_the_deadline_that_names_the_operation) {
  for (const bool rendezvous : {false, true}) {
    const AnyNetwork network{.name = "", .rendezvous = rendezvous};
    const auto begin = std::chrono::steady_clock::now();
    const std::string text =
        error_with_a_stalled_peer(network, [](Communicator& n) { receive_ints(n, 0, 6, 1); });
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
    EXPECT_NE(
        text.find("rank 1: expected to receive tag 6 from rank 0, found no progress within 0.1 s"),
        std::string::npos)
        << text;
  }
}

TEST(ThreadNetwork, a_rendezvous_send_has_a_deadline_too) {
  const AnyNetwork network{.name = "", .rendezvous = true};
  const std::string text =
      error_with_a_stalled_peer(network, [](Communicator& n) { send_ints(n, 0, 6, {1}); });
  EXPECT_NE(text.find("rank 1: expected to send tag 6 to rank 0, found no progress within"),
            std::string::npos)
      << text;
}

TEST(ThreadNetwork, a_short_stall_within_the_deadline_is_no_error) {
  const AnyNetwork network{.name = ""};
  network.run(2, [](Communicator& n) {
    if (n.rank() == 0) {
      std::this_thread::sleep_for(50ms);
      send_ints(n, 1, 0, {8});
    } else {
      EXPECT_EQ(receive_ints(n, 0, 0, 1), std::vector<int>{8});
    }
  });
}

TEST(ThreadNetwork, messages_of_others_are_progress) {
  const AnyNetwork network{.name = ""};
  const auto body = [](Communicator& n) {
    if (n.rank() == 2) {
      EXPECT_EQ(receive_ints(n, 1, 1, 1), std::vector<int>{9});
      return;
    }
    for (int turn = 0; turn < 60; ++turn) {  // two deadlines long
      std::this_thread::sleep_for(20ms);
      send_ints(n, 1 - n.rank(), 0, {turn});
      receive_ints(n, 1 - n.rank(), 0, 1);
    }
    if (n.rank() == 1) send_ints(n, 2, 1, {9});
  };
  network.run(3, body, 0.6);
}

double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

TEST(ThreadNetwork, a_rank_that_computes_is_at_work_however_long_a_step_takes) {
  const AnyNetwork network{.name = ""};
  const auto body = [](Communicator& n) {
    if (n.rank() == 1) {
      EXPECT_EQ(receive_ints(n, 0, 0, 1), std::vector<int>{9});
      return;
    }
    const double begin = processor_seconds();
    while (processor_seconds() - begin < 0.3) {  // as a rank among many: it seldom has a processor
      const double now = processor_seconds();
      while (processor_seconds() - now < 5e-3) {
      }
      std::this_thread::sleep_for(20ms);
    }
    send_ints(n, 1, 0, {9});
  };
  network.run(2, body, 1);
}

TEST(ThreadNetwork, a_rank_that_computes_for_ever_is_stalled_and_named) {
  const AnyNetwork network{.name = ""};
  std::atomic<bool> is_named = false;
  const auto body = [&](Communicator& n) {
    if (n.rank() == 0) {
      while (!is_named) {
      }
      return;
    }
    try {  // rank 2 waits for rank 1, which waits for rank 0
      receive_ints(n, n.rank() - 1, 0, 1);
    } catch (...) {
      is_named = true;
      throw;
    }
  };
  const std::string text = network.error_of(3, body, 0.5).what();
  EXPECT_NE(text.find("found no progress within 0.5 s"), std::string::npos) << text;
  EXPECT_NE(text.find("Suspect: rank 0"), std::string::npos) << text;
}

TEST(ThreadNetwork, timeouts_must_be_positive_and_may_be_infinite) {
  const AnyNetwork network{.name = ""};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double timeout : {0.0, -1.0, nan}) {
    EXPECT_EQ(network
                  .error_of(
                      1, [](Communicator&) {}, timeout)
                  .kind(),
              ErrorKind::usage);
  }
  const auto ping = [](Communicator& n) {
    if (n.rank() == 0) send_ints(n, 1, 0, {8});
    if (n.rank() == 1) receive_ints(n, 0, 0, 1);
  };
  network.run(2, ping, std::numeric_limits<double>::infinity());
}

TEST(ThreadNetwork, a_buffered_send_that_is_never_waited_for_still_arrives) {
  const AnyNetwork network{.name = ""};
  network.run(2, [](Communicator& n) {
    if (n.rank() == 0) {
      const std::vector<int> dies_with_the_body = {1, 2, 3};
      n.post_send(1, 0, bytes_of(dies_with_the_body.data(), 3));
    } else {
      std::this_thread::sleep_for(20ms);
      EXPECT_EQ(receive_ints(n, 0, 0, 3), (std::vector<int>{1, 2, 3}));
    }
  });
}

// Messages that are not buffered: longer than 4 MiB.
constexpr int kLong = (4 << 20) / 4 + 1;

std::vector<int> counted(int count, int first) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(ThreadNetwork, long_messages_of_any_length_arrive_in_both_directions_at_once) {
  // Made once, and compared as bytes: the thread sanitizer looks at every number that is touched.
  const std::array sent = {counted(3 * kLong, 0), counted(3 * kLong, 1), counted(3 * kLong, 2)};
  const auto arrived = [&](const std::vector<int>& received, int from) {
    return std::memcmp(received.data(), sent[static_cast<std::size_t>(from)].data(),
                       received.size() * sizeof(int)) == 0;
  };
  for (const int length : {kLong - 1, kLong, kLong + 1, 2 * kLong + 65535, 3 * kLong}) {
    for (const bool rendezvous : {false, true}) {
      const AnyNetwork network{.name = "", .rendezvous = rendezvous};
      network.run(3, [&](Communicator& n) {
        const int next = (n.rank() + 1) % 3, before = (n.rank() + 2) % 3;
        const int* mine = sent[static_cast<std::size_t>(n.rank())].data();
        std::vector<int> first(static_cast<std::size_t>(length), -1), second = first;
        const std::array requests = {
            n.post_receive(before, 0, writable_bytes_of(first.data(), length)),
            n.post_receive(next, 0, writable_bytes_of(second.data(), length)),
            n.post_send(before, 0, bytes_of(mine, length)),
            n.post_send(next, 0, bytes_of(mine, length))};
        for (const Request request : requests) n.wait(request);
        EXPECT_TRUE(arrived(first, before));
        EXPECT_TRUE(arrived(second, next));
      });
    }
  }
}

TEST(ThreadNetwork, a_long_message_takes_the_place_of_no_other) {
  const AnyNetwork network{.name = ""};
  network.run(2, [](Communicator& n) {
    if (n.rank() == 0) {
      const std::vector<int> a = counted(kLong, 1), b = {7}, c = counted(kLong, 3);
      const std::array requests = {n.post_send(1, 0, bytes_of(a.data(), kLong)),
                                   n.post_send(1, 0, bytes_of(b.data(), 1)),
                                   n.post_send(1, 0, bytes_of(c.data(), kLong))};
      for (const Request request : requests) n.wait(request);
    } else {
      EXPECT_EQ(receive_ints(n, 0, 0, kLong), counted(kLong, 1));
      EXPECT_EQ(receive_ints(n, 0, 0, 1), std::vector<int>{7});
      EXPECT_EQ(receive_ints(n, 0, 0, kLong), counted(kLong, 3));
    }
  });
}

TEST(ThreadNetwork, a_long_message_of_another_length_is_an_error_of_its_receiver) {
  const AnyNetwork network{.name = ""};
  const auto body = [](Communicator& n) {
    if (n.rank() == 0) {
      send_ints(n, 1, 0, counted(kLong, 1));
    } else {
      receive_ints(n, 0, 0, kLong + 1);
    }
  };
  const std::string text = network.error_of(2, body).what();
  EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(4 * kLong)), std::string::npos) << text;
}

TEST(ThreadNetwork, long_sends_that_wait_for_each_other_are_found_at_once) {
  const AnyNetwork network{.name = ""};
  const auto begin = std::chrono::steady_clock::now();
  const auto body = [](Communicator& n) { send_ints(n, 1 - n.rank(), 0, counted(kLong, 1)); };
  const std::string text = network.error_of(2, body, 60).what();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_NE(text.find("to send tag 0 to rank 1"), std::string::npos) << text;
}

TEST(ThreadNetwork, a_long_send_that_is_never_waited_for_is_missed_by_name) {
  const AnyNetwork network{.name = ""};
  const auto body = [](Communicator& n) {
    if (n.rank() == 0) {
      const std::vector<int> dies_with_the_body = counted(kLong, 1);
      n.post_send(1, 0, bytes_of(dies_with_the_body.data(), kLong));
    } else {
      receive_ints(n, 0, 0, kLong);
    }
  };
  const std::string text = network.error_of(2, body, 60).what();
  EXPECT_NE(text.find("rank 0 ended without waiting for this send"), std::string::npos) << text;
}

TEST(ThreadNetwork, a_long_message_whose_receiver_ended_is_found_at_once) {
  const AnyNetwork network{.name = ""};
  const auto body = [](Communicator& n) {
    if (n.rank() == 1) return;
    std::this_thread::sleep_for(20ms);
    send_ints(n, 1, 0, counted(kLong, 1));
  };
  const std::string text = network.error_of(2, body, 60).what();
  EXPECT_NE(text.find("rank 1 had ended without receiving it"), std::string::npos) << text;
}

/// Or nobody would know that destructors must not wait for the device.
TEST(ThreadNetwork, a_stuck_device_is_still_one_when_another_rank_has_waited_for_its_rank) {
  const RankBody body = [](Communicator& network) {
    if (network.rank() == 1) throw DeviceStuck({.where = "stage ring"});
    std::array<std::byte, 4> bytes{};
    network.wait(network.post_receive(1, 0, bytes));
  };
  for (const bool simulated : {false, true}) {
    try {
      simulated ? run_simulated(2, 1, {}, body) : run_threads(2, {}, body);
      FAIL() << "no error";
    } catch (const DeviceStuck& error) {
      EXPECT_EQ(error.parts().where, "rank 1, stage ring");
    }
  }
}

TEST(ThreadNetwork, a_stuck_device_is_told_though_another_rank_reached_its_deadline_before) {
  const RankBody body = [](Communicator& network) {
    if (network.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      throw DeviceStuck({.where = "stage ring"});
    }
    std::array<std::byte, 4> bytes{};
    network.wait(network.post_receive(1, 0, bytes));
  };
  EXPECT_THROW(run_threads(2, {.timeout_s = 0.02}, body), DeviceStuck);
}

TEST(ThreadNetwork, an_error_of_a_rank_is_the_cause_not_its_consequences) {
  const AnyNetwork network{.name = "", .rendezvous = true};
  for (int round = 0; round < repetitions(50); ++round) {
    const std::string text = network
                                 .error_of(5,
                                           [](Communicator& n) {
                                             if (n.rank() == 3) throw std::runtime_error("cause");
                                             receive_ints(n, (n.rank() + 1) % 5, 0, 1);
                                           })
                                 .what();
    EXPECT_EQ(text, "rank 3: cause");
  }
}

}  // namespace
}  // namespace ringlab
