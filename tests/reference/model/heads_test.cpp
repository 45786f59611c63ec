// Heads that are dealt to ranks: bytes, time and choice.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "reference/model/closed_forms.h"
#include "reference/model/training/step_planner.h"
#include "reference/model/training/transformer_file.h"
#include "stages/common/costs.h"

namespace ringlab::model {
namespace {

std::int64_t nothing_held(const Job& /*job*/, const JobNeeds& /*needs*/) { return 0; }

Problem with_heads(std::int64_t heads, std::int64_t kv_heads) {
  Problem problem;
  problem.shape = {.batch = 2,
                   .q_heads = heads,
                   .kv_heads = kv_heads,
                   .q_tokens = 48,
                   .kv_tokens = 48,
                   .head_dim = 5,
                   .v_dim = 4};
  problem.dtype = DType::bf16;
  problem.mask = parse_mask("causal").bind(48, 48);
  return problem;
}

TEST(DealtHeads, bytes_are_those_that_the_stage_states) {
  for (const int ranks : {1, 2, 3, 6}) {
    const Problem problem = with_heads(12, 6);
    RunOptions options;
    options.ranks = ranks;
    std::int64_t sent = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      sent += stages::heads_costs(problem, options, rank).sent_bytes;
    }
    EXPECT_EQ(deal_heads_bytes(problem, ranks), sent) << ranks;
  }
}

TEST(DealtHeads, fewer_kv_heads_than_ranks_go_to_all_who_share_them) {
  const Problem problem = with_heads(12, 2);
  const Shape& s = problem.shape;
  constexpr std::int64_t kRanks = 4, kOwn = 48 / kRanks;
  std::int64_t sent = 0;
  for (std::int64_t from = 0; from < kRanks; ++from) {
    for (std::int64_t to = 0; to < kRanks; ++to) {
      if (from == to) continue;
      const std::int64_t heads = s.q_heads / kRanks;
      sent += kOwn * heads * s.head_dim * 2;      // q of the other's heads
      sent += kOwn * (s.head_dim + s.v_dim) * 2;  // the one K/V head that they use
      sent += kOwn * heads * (s.v_dim * 2 + 4);   // out and lse of the own heads, back
    }
  }
  EXPECT_EQ(deal_heads_bytes(problem, kRanks), s.batch * sent);
}

/// What the devices of a context take in a step on h100.
StepWay dealt(int context, int by_heads) {
  StepWay way;
  way.split.context = context;
  way.by_heads = by_heads;
  return way;
}

TEST(DealtHeads, take_as_long_as_their_bytes_on_the_links) {
  const Transformer& m = find_transformer("llama-3.1-8b");
  Machine machine = find_machine("h100");
  machine.inside.latency_s = 0;
  constexpr std::int64_t kTokens = 16384;
  for (const int by_heads : {2, 4, 8}) {
    const Training training{.model = m, .tokens = kTokens};
    const RingCost cost = ring_cost(training, dealt(8, by_heads), machine, nothing_held);
    Problem problem;
    problem.dtype = DType::bf16;
    problem.shape = {.batch = 1,
                     .q_heads = m.heads,
                     .kv_heads = m.kv_heads,
                     .q_tokens = kTokens / 8 * by_heads,
                     .kv_tokens = kTokens / 8 * by_heads,
                     .head_dim = m.head_dim,
                     .v_dim = m.head_dim};
    const auto bytes = static_cast<double>(deal_heads_bytes(problem, by_heads));
    EXPECT_NEAR(cost.heads_s * machine.inside.bytes_per_s * by_heads / bytes, 1, 1e-9);
  }
}

TEST(DealtHeads, leave_as_much_to_compute) {
  Machine machine = find_machine("h100");
  scale_links(machine, 1e9);
  machine.block_s = machine.inside.latency_s = 0;
  machine.memory_bytes_per_s = std::numeric_limits<double>::infinity();
  const Training training{.model = find_transformer("llama-3.1-8b"), .tokens = 1 << 16};
  const RingCost ring = ring_cost(training, dealt(8, 1), machine, nothing_held);
  for (const int by_heads : {2, 4, 8}) {
    const RingCost cost = ring_cost(training, dealt(8, by_heads), machine, nothing_held);
    EXPECT_NEAR(cost.forward_s / ring.forward_s, 1, 0.001);
    EXPECT_NEAR(cost.backward_s / ring.backward_s, 1, 0.001);
  }
}

TEST(DealtHeads, are_weighed_where_heads_and_nodes_allow_it) {
  const SplitWish wish{.devices = 16, .context = 16};
  for (const char* name : {"llama-3.1-8b", "qwen2.5-7b", "gpt2"}) {
    const Transformer& m = find_transformer(name);  // 32 heads (8 of keys), 28 (4), 12 (12)
    std::vector<int> found;
    for (const StepWay& way :
         ways_to_train({.model = m, .tokens = 1 << 16}, wish, find_machine("h100"))) {
      if (std::ranges::find(found, way.by_heads) == found.end()) found.push_back(way.by_heads);
    }
    const std::vector<int> due = m.heads == 32 ? std::vector{1, 2, 4, 8} : std::vector{1, 2, 4};
    EXPECT_EQ(found, due) << name;
  }
}

TEST(DealtHeads, are_chosen_where_hops_of_a_ring_do_not_hide) {
  const SplitWish wish{.devices = 32, .context = 32};
  Machine machine = find_machine("h100");
  machine.memory_bytes = std::numeric_limits<double>::infinity();
  const auto chosen = [&](std::int64_t tokens) {
    const Training training{
        .model = find_transformer("llama-3.1-8b"), .tokens = tokens, .sequences = 64};
    return weigh_training(training, wish, machine, nothing_held).front().way.by_heads;
  };
  EXPECT_EQ(chosen(1 << 15), 8);
  EXPECT_EQ(chosen(1 << 20), 1);
}

}  // namespace
}  // namespace ringlab::model
