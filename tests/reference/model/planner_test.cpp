#include "reference/model/planner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "reference/model/many_ranks.h"

namespace ringlab::model {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

Machine fast_links(int node_ranks) {
  return {.name = "fast",
          .forward_flops = 1e12,
          .backward_flops = 1e12,
          .memory_bytes_per_s = kNoLimit,
          .inside = {.bytes_per_s = kNoLimit},
          .outside = {.bytes_per_s = kNoLimit},
          .node_ranks = node_ranks};
}

Job job_of(const char* mask, std::int64_t tokens, int ranks) {
  Job job;
  job.problem.shape = {.batch = 1,
                       .q_heads = 2,
                       .kv_heads = 1,
                       .q_tokens = tokens,
                       .kv_tokens = tokens,
                       .head_dim = 8,
                       .v_dim = 8};
  job.problem.mask = parse_mask(mask).bind(tokens, tokens);
  job.options.ranks = ranks;
  return job;
}

std::int64_t no_memory(const Job& /*job*/, const JobNeeds& /*needs*/) { return 0; }

RunOptions best_way(const Job& job, const Machine& machine) {
  const std::vector<Choice> choices = weigh_ways(job, machine, no_memory);
  return choices.at(best_choice(choices, {})).options;
}

// --- jobs ----------------------------------------------------------------------------------------

TEST(Jobs, take_as_long_as_their_passes_one_after_the_other) {
  Job both = job_of("causal", 96, 4);
  both.passes = {Pass::forward, Pass::backward};
  Job forward = both, backward = both;
  forward.passes = {Pass::forward};
  backward.passes = {Pass::backward};
  const JobNeeds needs = needs_of(both.problem, both.options);
  const Machine machine = find_machine("h200");
  const JobTimes whole = simulate_job(both, needs, machine);
  const JobTimes first = simulate_job(forward, needs, machine);
  const JobTimes second = simulate_job(backward, needs, machine);
  EXPECT_DOUBLE_EQ(whole.seconds, first.seconds + second.seconds);
  EXPECT_DOUBLE_EQ(whole.one_device_seconds, first.one_device_seconds + second.one_device_seconds);
  ASSERT_EQ(whole.events.size(), first.events.size() + second.events.size());
  const auto first_end_ns = static_cast<std::int64_t>(first.seconds * 1e9);
  for (std::size_t i = 0; i < whole.events.size(); ++i) {
    EXPECT_EQ(whole.events[i].begin_ns >= first_end_ns, i >= first.events.size());
  }
  for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
    EXPECT_DOUBLE_EQ(whole.ranks[rank].compute_s,
                     first.ranks[rank].compute_s + second.ranks[rank].compute_s);
    EXPECT_DOUBLE_EQ(whole.ranks[rank].end_s, first.seconds + second.ranks[rank].end_s);
  }
}

TEST(Jobs, need_what_their_layouts_say) {
  const Job job = job_of("causal", 101, 3);
  const JobNeeds needs = needs_of(job.problem, job.options);
  EXPECT_EQ(needs.tokens, (std::vector<std::int64_t>{34, 34, 33}));
  std::int64_t pairs = 0;
  for (int rank = 0; rank < 3; ++rank) {
    for (int owner = 0; owner < 3; ++owner) pairs += needs.need.pairs(rank, owner);
  }
  EXPECT_EQ(pairs, 101 * 102 / 2);
}

TEST(Jobs, that_have_nothing_to_do_lose_nothing) { EXPECT_EQ(JobTimes{}.efficiency(), 1); }

// --- ways ----------------------------------------------------------------------------------------

TEST(Ways, of_one_rank_are_one) {
  const std::vector<RunOptions> ways = ways_to_run({.ranks = 1}, fast_links(8));
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(ways[0].schedule, ScheduleKind::ring);
}

TEST(Ways, differ_and_go_through_nodes_only_where_there_are_several) {
  for (const auto& [ranks, node_ranks, due] :
       {std::tuple(8, 8, 0), std::tuple(9, 8, 12), std::tuple(4, 1, 0), std::tuple(4, 2, 9)}) {
    std::set<std::tuple<LayoutKind, ScheduleKind, int>> seen;
    int through_nodes = 0;
    const std::vector<RunOptions> ways = ways_to_run({.ranks = ranks}, fast_links(node_ranks));
    for (const RunOptions& way : ways) {
      seen.emplace(way.layout, way.schedule, way.slots);
      if (way.schedule != ScheduleKind::double_ring) continue;
      EXPECT_EQ(way.node_ranks, node_ranks);
      ++through_nodes;
    }
    EXPECT_EQ(seen.size(), ways.size());
    EXPECT_EQ(through_nodes, due);
  }
}

TEST(Ways, keep_what_the_job_says_besides) {
  for (const RunOptions& way :
       ways_to_run({.ranks = 4, .wire = WireFormat::fp8, .threads = 3}, fast_links(2))) {
    EXPECT_EQ(way.ranks, 4);
    EXPECT_EQ(way.wire, WireFormat::fp8);
    EXPECT_EQ(way.threads, 3);
  }
}

TEST(Ways, are_weighed_as_a_simulation_of_each_does) {
  const Job job = job_of("window:20,0", 90, 5);
  const Machine machine = find_machine("a100");
  const auto tokens_held = [](const Job& weighed, const JobNeeds& needs) {
    const std::int64_t all =
        std::accumulate(needs.tokens.begin(), needs.tokens.end(), std::int64_t{0});
    return all * 10 + static_cast<std::int64_t>(weighed.options.layout);
  };
  std::vector<std::size_t> told;
  const auto tell = [&](std::size_t weighed, std::size_t all) {
    EXPECT_EQ(all, ways_to_run(job.options, machine).size());
    told.push_back(weighed);
  };
  const std::vector<Choice> choices = weigh_ways(job, machine, tokens_held, tell);
  std::vector<std::size_t> in_turn(choices.size());
  std::iota(in_turn.begin(), in_turn.end(), std::size_t{0});
  EXPECT_EQ(told, in_turn);
  for (const Choice& choice : choices) {
    const Job alone{.problem = job.problem, .options = choice.options, .passes = job.passes};
    const JobTimes times = simulate_job(alone, needs_of(alone.problem, alone.options), machine);
    EXPECT_EQ(choice.seconds, times.seconds);
    EXPECT_EQ(choice.efficiency, times.efficiency());
    EXPECT_EQ(choice.memory_bytes, 900 + static_cast<std::int64_t>(choice.options.layout));
  }
}

TEST(Ways, of_more_ranks_than_are_executed_go_on_as_those_began) {
  const Machine machine = fast_links(1);
  const int most = line_of(1, machine).most;
  const Job job = job_of("causal", 64 * (most + 9), most + 9);
  const auto chunk_held = [](const Job& /*job*/, const JobNeeds& needs) { return needs.tokens[0]; };
  const std::vector<Choice> choices = weigh_ways(job, machine, chunk_held);
  EXPECT_FALSE(choices.empty());
  for (const Choice& choice : choices) {
    EXPECT_FALSE(schedule_traits(choice.options.schedule).holds_all);
    const Job alone{.problem = job.problem, .options = choice.options, .passes = job.passes};
    const JobTimes times = simulate_job(alone, needs_of(alone.problem, alone.options), machine);
    EXPECT_NEAR(choice.seconds / times.seconds, 1, 0.02);
    EXPECT_NEAR(choice.efficiency / times.efficiency(), 1, 0.02);
    EXPECT_EQ(choice.memory_bytes, 64);
  }
}

// --- the best ------------------------------------------------------------------------------------

TEST(BestChoice, of_a_full_mask_is_a_contiguous_ring) {
  const RunOptions way = best_way(job_of("full", 4096, 8), fast_links(4));
  EXPECT_EQ(way.layout, LayoutKind::contiguous);
  EXPECT_EQ(way.schedule, ScheduleKind::ring);
  EXPECT_EQ(way.slots, 2);
}

TEST(BestChoice, over_slow_links_between_nodes_has_a_slot_for_every_step_inside_a_node) {
  Machine machine = fast_links(4);
  machine.outside.bytes_per_s = 1.1e9;  // a chunk takes a little less than four blocks
  const RunOptions way = best_way(job_of("full", 4096, 16), machine);
  EXPECT_EQ(way.schedule, ScheduleKind::double_ring);
  EXPECT_EQ(way.slots, 5);
}

TEST(BestChoice, of_a_causal_mask_is_a_zigzag_ring) {
  const RunOptions way = best_way(job_of("causal", 4096, 8), fast_links(4));
  EXPECT_EQ(way.layout, LayoutKind::zigzag);
  EXPECT_EQ(way.schedule, ScheduleKind::ring);
}

TEST(BestChoice, goes_both_ways_where_each_has_links_of_its_own_and_they_are_slow) {
  Machine machine = fast_links(8);
  machine.inside.bytes_per_s = 1e9;
  machine.wiring = Wiring::direct;
  EXPECT_EQ(best_way(job_of("full", 4096, 8), machine).schedule, ScheduleKind::bidirectional);
}

TEST(BestChoice, enters_nodes_once_where_links_between_them_are_slow) {
  Machine machine = fast_links(4);
  machine.outside.bytes_per_s = 1e9;
  EXPECT_EQ(best_way(job_of("full", 4096, 16), machine).schedule, ScheduleKind::double_ring);
}

RC_GTEST_PROP(BestChoice, keeps_the_limits_is_as_fast_as_any_and_the_simplest_of_these, ()) {
  std::vector<Choice> choices;
  for (const auto& [tenths, bytes] : *rc::gen::container<std::vector<std::pair<int, int>>>(
           rc::gen::pair(rc::gen::inRange(1000, 1030), rc::gen::inRange(0, 10)))) {
    choices.push_back({.seconds = tenths / 1000.0, .efficiency = 1, .memory_bytes = bytes});
  }
  const PlanLimits limits{.memory_bytes = static_cast<double>(*rc::gen::inRange(0, 10)),
                          .seconds = *rc::gen::inRange(1000, 1030) / 1000.0};
  const auto holds = [&](const Choice& choice) {
    return static_cast<double>(choice.memory_bytes) <= limits.memory_bytes &&
           choice.seconds <= limits.seconds;
  };
  const std::size_t best = best_choice(choices, limits);
  if (best == choices.size()) {
    RC_ASSERT(std::none_of(choices.begin(), choices.end(), holds));
    return;
  }
  RC_ASSERT(holds(choices[best]));
  double fastest = kNoLimit;
  for (const Choice& choice : choices) {
    if (holds(choice)) fastest = std::min(fastest, choice.seconds);
  }
  RC_ASSERT(choices[best].seconds <= fastest * (1 + kAsFast));
  for (std::size_t i = 0; i < best; ++i) {
    RC_ASSERT(!holds(choices[i]) || choices[i].seconds > fastest * (1 + kAsFast));
  }
}

}  // namespace
}  // namespace ringlab::model
