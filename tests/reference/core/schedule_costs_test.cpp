#include "reference/core/schedule/schedule_costs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "reference/core/error.h"
#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab {
namespace {

std::string text_of(const RankCosts& costs) {
  const auto traffic = [](const ChunkTraffic& some) {
    return std::to_string(some.chunks) + " chunks " + std::to_string(some.tokens) + " tokens, ";
  };
  return "sent " + traffic(costs.kv_sent) + "received " + traffic(costs.kv_received) +
         "gradients sent " + traffic(costs.gradients_sent) + "received " +
         traffic(costs.gradients_received) + std::to_string(costs.slots) + " slots, " +
         std::to_string(costs.gradient_slots) + " gradient slots";
}

/// What differs between the closed form and the count, rank by rank; empty when nothing does.
std::string difference(const ScheduleSpec& spec, const NeedMatrix& need, Pass pass,
                       const std::vector<std::int64_t>& lengths) {
  const ScheduleCosts closed = schedule_costs(spec, need, pass, lengths);
  const ScheduleCosts counted = count_schedule(build_schedule(spec, need, pass), lengths);
  if (closed == counted) return {};
  std::string text = text_of(spec, need.ranks(), pass) + ": hops " + std::to_string(closed.hops) +
                     ", counted " + std::to_string(counted.hops) + "\n";
  for (std::size_t rank = 0; rank < closed.ranks.size(); ++rank) {
    text += text_of(closed.ranks[rank]) + "\n  counted " + text_of(counted.ranks[rank]) + "\n";
  }
  return text;
}

TEST(ScheduleCosts, closed_forms_are_what_is_counted_on_1_to_9_ranks) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int slots = 1; slots <= 4; ++slots) {
      for (const ScheduleSpec& spec : every_spec(ranks, slots)) {
        for (const Pass pass : {Pass::forward, Pass::backward}) {
          for (const NeedMatrix& need : {full_need(ranks), causal_need(ranks)}) {
            ASSERT_EQ(difference(spec, need, pass, some_lengths(ranks)), "");
          }
        }
      }
    }
  }
}

void compare_many(int ranks, const NeedMatrix& need, const std::vector<std::int64_t>& lengths) {
  for (int i = 0; i < 15; ++i) {
    const ScheduleSpec spec = random_spec(ranks);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      RC_ASSERT(difference(spec, need, pass, lengths) == "");
    }
  }
}

RC_GTEST_PROP(ScheduleCosts, closed_forms_are_what_is_counted_whatever_is_needed, ()) {
  const int ranks = random_int(1, 17);
  compare_many(ranks, random_need(ranks), some_lengths(ranks));
}

RC_GTEST_PROP(ScheduleCosts, closed_forms_are_what_is_counted_for_masks_and_layouts, ()) {
  const int ranks = random_int(1, 17);
  std::vector<std::int64_t> lengths;
  const NeedMatrix need = need_of_a_mask(ranks, &lengths);
  compare_many(ranks, need, lengths);
}

TEST(ScheduleCosts, in_a_full_ring_every_rank_sends_and_receives_all_chunks_but_one) {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    const auto lengths = some_lengths(ranks);
    const auto all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    const auto costs = schedule_costs({}, full_need(ranks), Pass::backward, lengths);
    EXPECT_EQ(costs.hops, ranks - 1);
    for (int rank = 0; rank < ranks; ++rank) {
      const RankCosts& here = costs.ranks[static_cast<std::size_t>(rank)];
      const auto own = lengths[static_cast<std::size_t>(rank)];
      const auto after = lengths[static_cast<std::size_t>((rank + 1) % ranks)];
      EXPECT_EQ(here.kv_sent, (ChunkTraffic{ranks - 1, all - after}));
      EXPECT_EQ(here.kv_received, (ChunkTraffic{ranks - 1, all - own}));
      EXPECT_EQ(here.gradients_sent, (ChunkTraffic{ranks - 1, all - own}));
      EXPECT_EQ(here.gradients_received.chunks, ranks - 1);
      EXPECT_EQ(here.slots, std::min(2, ranks - 1));
    }
  }
}

TEST(ScheduleCosts, broadcast_and_one_slot_send_the_own_chunk_to_all_others) {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    const auto lengths = some_lengths(ranks);
    for (const ScheduleSpec& spec :
         {ScheduleSpec{.kind = ScheduleKind::broadcast}, ScheduleSpec{.slots = 1}}) {
      const auto costs = schedule_costs(spec, full_need(ranks), Pass::forward, lengths);
      EXPECT_EQ(costs.hops, std::min(1, ranks - 1));
      for (int rank = 0; rank < ranks; ++rank) {
        const RankCosts& here = costs.ranks[static_cast<std::size_t>(rank)];
        const auto own = lengths[static_cast<std::size_t>(rank)];
        EXPECT_EQ(here.kv_sent, (ChunkTraffic{ranks - 1, (ranks - 1) * own}));
        EXPECT_EQ(here.slots, spec.slots == 1 ? std::min(1, ranks - 1) : ranks - 1);
        EXPECT_EQ(here.gradients_sent, ChunkTraffic{});
      }
    }
  }
}

TEST(ScheduleCosts, both_ways_no_chunk_goes_further_than_half_the_ring) {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    const ScheduleSpec spec{.kind = ScheduleKind::bidirectional};
    const auto costs = schedule_costs(spec, full_need(ranks), Pass::forward, some_lengths(ranks));
    EXPECT_EQ(costs.hops, ranks / 2);  // = ceil((P-1)/2) exchanges
    for (const RankCosts& here : costs.ranks) {
      EXPECT_EQ(here.kv_sent.chunks, ranks - 1);
      EXPECT_EQ(here.slots, std::min(4, ranks - 1));
    }
  }
}

/// K/V messages that `rank` receives from other nodes of `width` ranks, by the operations.
int from_other_nodes(const Schedule& schedule, int rank, int width) {
  int messages = 0;
  for (const Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)].operations) {
    const bool receives = operation.verb == Verb::post_receive;
    if (receives && operation.peer / width != rank / width) ++messages;
  }
  return messages;
}

TEST(ScheduleCosts, in_a_double_ring_each_chunk_enters_each_other_node_once) {
  for (int width = 1; width <= 4; ++width) {
    for (int nodes = 1; nodes <= 4; ++nodes) {
      const int ranks = width * nodes;
      const ScheduleSpec spec{.kind = ScheduleKind::double_ring, .node_ranks = width};
      const Schedule schedule = build_schedule(spec, full_need(ranks), Pass::forward);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(from_other_nodes(schedule, rank, width), nodes - 1);
      }
      const auto costs = schedule_costs(spec, full_need(ranks), Pass::forward, some_lengths(ranks));
      EXPECT_EQ(costs.hops, nodes > 1 ? width : width - 1);
      for (const RankCosts& here : costs.ranks) EXPECT_EQ(here.kv_received.chunks, ranks - 1);
    }
  }
}

TEST(ScheduleCosts, causal_striping_needs_all_chunks_and_contiguous_chunks_only_earlier_ones) {
  const auto costs = schedule_costs({}, causal_need(5), Pass::backward, {1, 1, 1, 1, 1});
  for (int rank = 0; rank < 5; ++rank) {
    const RankCosts& here = costs.ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(here.kv_received.chunks, rank);
    EXPECT_EQ(here.gradients_sent.chunks, rank);
    EXPECT_EQ(here.kv_sent.chunks, rank == 4 ? 0 : rank + 1);
  }
}

TEST(ScheduleCosts, lengths_that_do_not_fit_and_specs_without_slots_are_refused) {
  EXPECT_THROW(schedule_costs({}, full_need(3), Pass::forward, {1, 1}), Error);
  EXPECT_THROW(schedule_costs({.slots = 0}, full_need(1), Pass::forward, {1}), Error);
}

}  // namespace
}  // namespace ringlab
