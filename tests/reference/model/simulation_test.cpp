#include "reference/model/simulation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "property_tests/programs/trace_check.h"
#include "reference/core/error.h"
#include "reference/core/schedule/schedule_costs.h"
#include "reference/model/closed_forms.h"
#include "reference/model/job.h"
#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab::model {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// One operation a pair and a second, one byte a token: times are counts.
constexpr Work kUnitWork{.flops_per_pair = 1, .kv_bytes_per_token = 1};
constexpr Work kUnitWorkBackward{
    .pass = Pass::backward, .flops_per_pair = 1, .kv_bytes_per_token = 1, .sum_bytes_per_token = 2};
Work unit_work(Pass pass) { return pass == Pass::forward ? kUnitWork : kUnitWorkBackward; }

Machine unit_machine(double bytes_per_s, Wiring wiring = Wiring::switched) {
  return {.name = "unit",
          .forward_flops = 1,
          .backward_flops = 1,
          .memory_bytes_per_s = 1,
          .inside = {.bytes_per_s = bytes_per_s},
          .outside = {.bytes_per_s = bytes_per_s},
          .node_ranks = 1 << 20,
          .wiring = wiring};
}

/// A problem of P chunks with c tokens each.
struct Ring {
  int ranks = 4;
  std::int64_t chunk = 6;
  const char* mask = "full";
  LayoutKind layout = LayoutKind::contiguous;
  ScheduleSpec spec = {};

  std::int64_t tokens() const { return ranks * chunk; }
  NeedMatrix need() const {
    const Layout rows(layout, tokens(), ranks);
    return need_matrix(parse_mask(mask).bind(tokens(), tokens()), rows, rows);
  }
};

Simulation run(const Ring& ring, const Machine& machine, const Disturbance& disturbance = {},
               Pass pass = Pass::forward) {
  const NeedMatrix need = ring.need();
  const Schedule schedule = build_schedule(ring.spec, need, pass);
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(ring.ranks), ring.chunk);
  return simulate({schedule, need, lengths, unit_work(pass)}, machine, disturbance);
}

double seconds(const Ring& ring, const Machine& machine, const Disturbance& disturbance = {}) {
  return run(ring, machine, disturbance).seconds;
}

// --- closed forms of balance, with links that cost nothing ---------------------------------------

TEST(Simulation, of_a_contiguous_causal_ring_takes_as_long_as_its_last_rank_computes) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const Ring ring{.ranks = ranks, .mask = "causal"};
    const std::int64_t c = ring.chunk;
    EXPECT_EQ(seconds(ring, unit_machine(kInfinite)),
              static_cast<double>((ranks - 1) * c * c + c * (c + 1) / 2));
  }
}

TEST(Simulation, of_a_zigzag_causal_ring_loses_nothing) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const Ring ring{.ranks = ranks, .mask = "causal", .layout = LayoutKind::zigzag};
    const std::int64_t pairs = ring.tokens() * (ring.tokens() + 1) / 2;
    EXPECT_EQ(ranks * seconds(ring, unit_machine(kInfinite)), static_cast<double>(pairs));
  }
}

TEST(Simulation, of_a_striped_causal_ring_loses_half_a_row_a_step) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const Ring ring{.ranks = ranks, .mask = "causal", .layout = LayoutKind::striped};
    EXPECT_EQ(seconds(ring, unit_machine(kInfinite)),
              static_cast<double>(ranks * ring.chunk * (ring.chunk + 1) / 2));
  }
}

// --- closed forms of links -------------------------------------------------------------------------

TEST(Simulation, of_a_full_ring_is_paced_by_what_takes_longer) {
  for (const double bytes_per_s : {0.05, 0.1, 1.0 / 6, 0.2, 1.0, 7.0}) {
    for (int ranks = 2; ranks <= 7; ++ranks) {
      const Ring ring{.ranks = ranks, .spec = {.slots = 3}};
      const double block = 36, hop = 6 / bytes_per_s;
      EXPECT_NEAR(seconds(ring, unit_machine(bytes_per_s)),
                  (ranks - 1) * std::max(block, hop) + block, 1e-9);
    }
  }
}

TEST(Simulation, of_a_full_ring_stops_waiting_at_the_chunk_of_the_closed_form) {
  const Machine machine = unit_machine(0.25);
  const double from = hidden_from_tokens(kUnitWork, machine, machine.inside, 1);
  EXPECT_EQ(from, 4);
  for (std::int64_t chunk = 1; chunk <= 8; ++chunk) {
    const Simulation simulation = run({.ranks = 5, .chunk = chunk}, machine);
    for (const RankTimes& rank : simulation.ranks) {
      EXPECT_EQ(rank.wait_s == 0, static_cast<double>(chunk) >= from) << chunk;
    }
  }
}

TEST(Simulation, of_a_ring_with_one_slot_hides_the_first_hop_only) {
  const Ring ring{.ranks = 5, .spec = {.slots = 1}};
  EXPECT_NEAR(seconds(ring, unit_machine(0.5)), 5 * 36 + 3 * 12, 1e-9);
}

TEST(Simulation, of_both_ways_at_once_halves_messages_only_where_each_way_has_a_link) {
  const auto time = [](ScheduleKind kind, Wiring wiring) {
    Machine machine = unit_machine(0.05, wiring);  // hops of 120 s
    machine.forward_flops = kInfinite;
    return seconds({.ranks = 9, .spec = {.kind = kind, .slots = 4}}, machine);
  };
  for (const Wiring wiring : {Wiring::switched, Wiring::direct, Wiring::shared}) {
    EXPECT_NEAR(time(ScheduleKind::ring, wiring), 8 * 120, 1e-9);
  }
  EXPECT_NEAR(time(ScheduleKind::bidirectional, Wiring::direct), 4 * 120, 1e-9);
  EXPECT_NEAR(time(ScheduleKind::bidirectional, Wiring::switched), 8 * 120, 1e-9);
  EXPECT_NEAR(time(ScheduleKind::bidirectional, Wiring::shared), 8 * 120, 1e-9);
}

TEST(Simulation, of_both_ways_at_once_ends_with_the_two_blocks_that_came_last) {
  const ScheduleSpec both{.kind = ScheduleKind::bidirectional, .slots = 4};
  const Ring ring{.ranks = 9, .spec = both};  // hops of 120 s over blocks of 36 s
  EXPECT_NEAR(seconds(ring, unit_machine(0.05, Wiring::direct)), 4 * 120 + 2 * 36, 1e-9);
}

TEST(Simulation, adds_latencies_to_what_waits) {
  Machine machine = unit_machine(0.05);
  machine.inside.latency_s = 5;
  EXPECT_NEAR(seconds({.ranks = 4, .spec = {.slots = 3}}, machine), 3 * (120 + 5) + 36, 1e-9);
}

TEST(Simulation, takes_the_slow_way_between_nodes_only) {
  Machine machine = unit_machine(kInfinite);
  machine.node_ranks = 2;
  machine.outside.bytes_per_s = 0.1;  // a hop of 60 s under blocks of 36
  const double ring = seconds({.ranks = 4, .spec = {.slots = 3}}, machine);
  ScheduleSpec nodes{.kind = ScheduleKind::double_ring, .node_ranks = 2, .slots = 3};
  const double two_levels = seconds({.ranks = 4, .spec = nodes}, machine);
  EXPECT_LT(two_levels, ring);
  EXPECT_EQ(seconds({.ranks = 2}, machine), 72);  // within a node
}

// --- ranks that are not alike --------------------------------------------------------------------

TEST(Simulation, with_one_slow_rank_is_as_slow_as_that_rank) {
  Disturbance disturbance{.slower = {1, 1, 3, 1}};
  const Simulation simulation = run({.ranks = 4}, unit_machine(kInfinite), disturbance);
  EXPECT_EQ(simulation.ranks[2].wait_s, 0);
  EXPECT_EQ(simulation.ranks[2].end_s, 3 * 4 * 36);
  EXPECT_EQ(simulation.seconds, 3 * 4 * 36);
  EXPECT_GT(simulation.ranks[3].wait_s, 0);
}

TEST(Simulation, with_jitter_is_the_same_for_the_same_seed_and_gains_from_slots) {
  const auto jittered = [](int slots, std::uint64_t seed) {
    const Ring ring{.ranks = 8, .chunk = 12, .spec = {.slots = slots}};
    return seconds(ring, unit_machine(0.1), {.jitter = 0.5, .seed = seed});
  };
  EXPECT_EQ(jittered(2, 1), jittered(2, 1));
  EXPECT_NE(jittered(2, 1), jittered(2, 2));
  EXPECT_LT(jittered(3, 1), jittered(1, 1));
}

TEST(Simulation, gives_a_block_the_same_jitter_in_every_schedule) {
  const auto computing = [](ScheduleKind kind) {
    const Ring ring{.ranks = 5, .spec = {.kind = kind}};
    return run(ring, unit_machine(1), {.jitter = 2}).ranks[3].compute_s;
  };
  EXPECT_NEAR(computing(ScheduleKind::ring), computing(ScheduleKind::allgather), 1e-9);
  EXPECT_GT(computing(ScheduleKind::ring), 5 * 36);
}

// --- laws for every schedule ---------------------------------------------------------------------

Machine random_machine() {
  Machine machine =
      unit_machine(*rc::gen::element(0.01, 0.3, 1.0, 5.0, kInfinite),
                   *rc::gen::element(Wiring::switched, Wiring::direct, Wiring::shared));
  machine.outside.bytes_per_s = machine.inside.bytes_per_s / 3;
  machine.node_ranks = random_int(1, 5);
  machine.inside.latency_s = *rc::gen::element(0.0, 0.5);
  machine.block_s = *rc::gen::element(0.0, 2.0);
  return machine;
}

/// What every simulation must be.
void check_laws(const Load& load, const Machine& machine, const Disturbance& disturbance) {
  const Simulation simulation = simulate(load, machine, disturbance);
  RC_ASSERT(joined(check_trace(simulation.events, load.schedule)) == "");
  const ScheduleCosts costs = count_schedule(load.schedule, load.tokens);
  for (std::size_t rank = 0; rank < simulation.ranks.size(); ++rank) {
    const RankTimes& times = simulation.ranks[rank];
    const double parts = times.compute_s + times.add_s + times.wait_s;
    RC_ASSERT(std::abs(parts - times.end_s) <= 1e-9 * (1 + times.end_s));
    RC_ASSERT(times.end_s <= simulation.seconds);
    const RankCosts& moved = costs.ranks[rank];
    const std::int64_t bytes = moved.kv_received.tokens * load.work.kv_bytes_per_token +
                               moved.gradients_received.tokens * load.work.sum_bytes_per_token;
    // The fastest way is the inner one; by one way in, no more than that fits into the time.
    const double least = static_cast<double>(bytes) / machine.inside.bytes_per_s;
    RC_ASSERT(times.incoming_s >= least * (1 - 1e-12));
  }
}

Disturbance random_disturbance(int ranks) {
  Disturbance disturbance{.jitter = *rc::gen::element(0.0, 1.0),
                          .seed = *rc::gen::arbitrary<std::uint64_t>()};
  if (*rc::gen::arbitrary<bool>()) {
    disturbance.slower.assign(static_cast<std::size_t>(ranks), 1);
    disturbance.slower[static_cast<std::size_t>(random_int(0, ranks - 1))] = 4;
  }
  return disturbance;
}

RC_GTEST_PROP(Simulation, is_a_run_that_obeys_its_schedule, ()) {
  const int ranks = random_int(1, 9);
  std::vector<std::int64_t> lengths = some_lengths(ranks);
  NeedMatrix need = random_need(ranks);
  if (*rc::gen::arbitrary<bool>()) {
    lengths.clear();
    need = need_of_a_mask(ranks, &lengths);
  }
  for (int i = 0; i < 8; ++i) {
    const Pass pass = *rc::gen::element(Pass::forward, Pass::backward);
    const Schedule schedule = build_schedule(random_spec(ranks), need, pass);
    check_laws({schedule, need, lengths, unit_work(pass)}, random_machine(),
               random_disturbance(ranks));
  }
}

// --- what is refused -----------------------------------------------------------------------------

TEST(Simulation, of_a_schedule_that_stops_names_the_place) {
  const NeedMatrix need = full_need(2);
  Schedule schedule = build_schedule({}, need, Pass::forward);
  std::erase_if(schedule.ranks[1].operations,
                [](const Operation& operation) { return operation.verb == Verb::post_send; });
  try {
    simulate({schedule, need, {1, 1}, kUnitWork}, unit_machine(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0, step 1, wait_receive of chunk 1"),
              std::string::npos)
        << error.what();
  }
}

TEST(Simulation, of_sizes_that_do_not_fit_together_is_refused) {
  const NeedMatrix need = full_need(2);
  const Schedule schedule = build_schedule({}, need, Pass::forward);
  const Machine machine = unit_machine(1);
  EXPECT_NO_THROW(simulate({schedule, need, {1, 1}, kUnitWork}, machine));
  EXPECT_THROW(simulate({schedule, need, {1}, kUnitWork}, machine), Error);
  EXPECT_THROW(simulate({schedule, full_need(3), {1, 1}, kUnitWork}, machine), Error);
  EXPECT_THROW(simulate({schedule, need, {1, 1}, kUnitWorkBackward}, machine), Error);
  EXPECT_THROW(simulate({schedule, need, {1, 1}, kUnitWork}, machine, {.slower = {1}}), Error);
  EXPECT_THROW(simulate({schedule, need, {1, 1}, kUnitWork}, machine, {.slower = {1, 0}}), Error);
  EXPECT_THROW(simulate({schedule, need, {1, 1}, kUnitWork}, machine, {.jitter = -1}), Error);
}

TEST(Simulation, of_one_device_computes_all_pairs) {
  Job job;
  job.problem.shape = {1, 1, 1, 18, 18, 1, 1};
  job.problem.mask = parse_mask("causal").bind(18, 18);
  // Four operations for each pair: two products of one number.
  EXPECT_EQ(one_device_seconds(job, unit_machine(1)), 4 * 18 * 19 / 2);
}

}  // namespace
}  // namespace ringlab::model
