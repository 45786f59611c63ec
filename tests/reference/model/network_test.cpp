#include "reference/model/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ringlab::model {
namespace {

constexpr double kNever = NetworkModel::kNever;

struct Sent {
  int from, to;
  double at = 0;
  std::int64_t bytes = 100;
};

/// When each of them ends. Ten bytes a second within nodes of 4 ranks, five between them.
std::vector<double> ends_of(const std::vector<Sent>& sent, Wiring wiring = Wiring::switched) {
  const Machine machine{.inside = {.bytes_per_s = 10},
                        .outside = {.bytes_per_s = 5},
                        .node_ranks = 4,
                        .wiring = wiring};
  NetworkModel network(machine);
  std::vector<double> ends(sent.size(), kNever);
  std::size_t started = 0;  // they are given in the order of their times
  for (double now = 0; now != kNever;) {
    for (const int message : network.take_ended(now)) ends[static_cast<std::size_t>(message)] = now;
    for (; started < sent.size() && sent[started].at <= now; ++started) {
      const Sent& one = sent[started];
      network.start(static_cast<int>(started), one.from, one.to, one.bytes, now);
    }
    if (network.has_changed()) network.share(now);
    const double next_start = started < sent.size() ? sent[started].at : kNever;
    now = std::min(next_start, network.next_end());
  }
  return ends;
}
using Ends = std::vector<double>;

TEST(NetworkModel, gives_a_message_that_is_alone_all_of_its_way) {
  EXPECT_EQ(ends_of({{0, 1}}), Ends{10});
  EXPECT_EQ(ends_of({{0, 1, 0}, {0, 1, 10}}), (Ends{10, 20}));
  EXPECT_EQ(ends_of({{.from = 0, .to = 1, .bytes = 0}}), Ends{0});
}

TEST(NetworkModel, with_a_switch_shares_the_way_out_and_the_way_in_of_a_rank) {
  EXPECT_EQ(ends_of({{0, 1}, {0, 2}}), (Ends{20, 20}));
  EXPECT_EQ(ends_of({{0, 1}, {2, 1}}), (Ends{20, 20}));
  EXPECT_EQ(ends_of({{0, 1}, {1, 0}, {2, 3}}), (Ends{10, 10, 10}));
}

TEST(NetworkModel, with_direct_links_shares_those_of_a_pair_and_a_direction) {
  EXPECT_EQ(ends_of({{0, 1}, {0, 2}, {1, 0}}, Wiring::direct), (Ends{10, 10, 10}));
}

TEST(NetworkModel, sends_messages_of_one_pair_one_after_the_other) {
  for (const Wiring wiring : {Wiring::switched, Wiring::direct, Wiring::shared}) {
    EXPECT_EQ(ends_of({{0, 1}, {0, 1}, {0, 1}}, wiring), (Ends{10, 20, 30}));
    EXPECT_EQ(ends_of({{0, 4}, {0, 4}}, wiring), (Ends{20, 40}));
  }
  // Only the first of a pair has a share of the ways: rank 2 has half, not a third.
  EXPECT_EQ(ends_of({{0, 1}, {0, 1}, {0, 2}}), (Ends{20, 30, 20}));
}

TEST(NetworkModel, with_shared_links_shares_those_of_a_pair) {
  EXPECT_EQ(ends_of({{0, 1}, {1, 0}, {1, 2}}, Wiring::shared), (Ends{20, 20, 10}));
}

TEST(NetworkModel, between_nodes_has_other_ways_which_are_switched) {
  for (const Wiring wiring : {Wiring::switched, Wiring::direct, Wiring::shared}) {
    EXPECT_EQ(ends_of({{0, 1}, {0, 4}}, wiring), (Ends{10, 20}));
    EXPECT_EQ(ends_of({{0, 4}, {0, 5}}, wiring), (Ends{40, 40}));
    EXPECT_EQ(ends_of({{0, 4}, {4, 0}}, wiring), (Ends{20, 20}));
  }
}

TEST(NetworkModel, shares_anew_when_messages_start_and_end) {
  // Alone for 5 s, half the way for 10 s, alone again.
  EXPECT_EQ(ends_of({{0, 1}, {.from = 0, .to = 2, .at = 5, .bytes = 50}}), (Ends{15, 15}));
  EXPECT_EQ(ends_of({{0, 1}, {.from = 0, .to = 2, .at = 5, .bytes = 20}}), (Ends{12, 9}));
}

TEST(NetworkModel, is_as_fast_as_the_slowest_share) {
  // Rank 1 receives two messages, so that neither has more than half of its way out.
  EXPECT_EQ(ends_of({{0, 1}, {2, 1}, {3, 0}}), (Ends{20, 20, 10}));
}

TEST(NetworkModel, gives_what_slow_messages_leave_to_others) {
  // Three into rank 1 have a third each; what rank 0 has left goes to its message to rank 2.
  const Ends ends = ends_of({{0, 1}, {2, 1}, {3, 1}, {.from = 0, .to = 2, .bytes = 200}});
  EXPECT_DOUBLE_EQ(ends[0], 30);
  EXPECT_DOUBLE_EQ(ends[3], 30);
}

TEST(NetworkModel, without_limit_ends_messages_at_once) {
  const Machine machine{.inside = {.bytes_per_s = kNever}, .outside = {.bytes_per_s = kNever}};
  NetworkModel network(machine);
  network.start(0, 0, 1, 100, 3);
  network.start(1, 0, 2, 100, 3);
  network.share(3);
  EXPECT_EQ(network.take_ended(3), (std::vector<int>{0, 1}));
  EXPECT_EQ(network.next_end(), kNever);
}

}  // namespace
}  // namespace ringlab::model
