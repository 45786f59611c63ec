// A machine that is better in one figure is never slower, where messages do not take each other's
// share: elsewhere one that sets out earlier can slow down one that is waited for, as sums of
// gradients and chunks of one pair do.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "reference/model/simulation.h"
#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab::model {
namespace {

constexpr double kRoundings = 1e-9;  // of times that are sums of a few thousand terms

/// Any pairs and tokens that a mask could leave.
struct AnyLoad {
  NeedMatrix need;
  std::vector<std::int64_t> tokens;

  double seconds(const ScheduleSpec& spec, Pass pass, const Machine& machine) const {
    const Schedule schedule = build_schedule(spec, need, pass);
    const Work work{.pass = pass,
                    .flops_per_pair = 1,
                    .kv_bytes_per_token = 40,
                    .sum_bytes_per_token = pass == Pass::forward ? 0 : 80};
    return simulate({schedule, need, tokens, work}, machine).seconds;
  }
};

AnyLoad random_load(int ranks) {
  AnyLoad load{.need = NeedMatrix(ranks), .tokens = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    load.tokens.push_back(random_int(0, 60));
    for (int owner = 0; owner < ranks; ++owner) load.need.set(rank, owner, random_int(0, 4000));
  }
  return load;
}

/// All ranks in one node.
Machine random_machine(Wiring wiring) {
  const LinkSpeed link{.bytes_per_s = static_cast<double>(random_int(1, 40)) / 8,
                       .latency_s = static_cast<double>(random_int(0, 300))};
  return {.name = "any",
          .forward_flops = 1,
          .backward_flops = 1,
          .memory_bytes_per_s = static_cast<double>(random_int(1, 100)),
          .block_s = static_cast<double>(random_int(0, 100)),
          .inside = link,
          .outside = link,
          .node_ranks = 64,
          .wiring = wiring};
}

/// Each better in one figure.
std::vector<Machine> better_than(const Machine& machine) {
  std::vector<Machine> better(5, machine);
  better[0].inside.bytes_per_s *= 1.5;
  better[1].inside.latency_s /= 2;
  better[2].forward_flops = better[2].backward_flops = 1.5;
  better[3].memory_bytes_per_s *= 2;
  better[4].block_s /= 2;
  return better;
}

void check_never_slower(const AnyLoad& load, const ScheduleSpec& spec, Pass pass,
                        const Machine& machine) {
  RC_LOG() << text_of(spec, load.need.ranks(), pass);
  const double most = load.seconds(spec, pass, machine) * (1 + kRoundings);
  for (const Machine& better : better_than(machine)) {
    RC_ASSERT(load.seconds(spec, pass, better) <= most);
  }
}

RC_GTEST_PROP(BetterMachine, is_never_slower_where_every_pair_has_a_way_of_its_own, ()) {
  const int ranks = random_int(1, 12);
  check_never_slower(random_load(ranks), random_spec(ranks), Pass::forward,
                     random_machine(Wiring::direct));
}

RC_GTEST_PROP(BetterMachine, is_never_slower_for_a_forward_ring, ()) {
  const Wiring wiring = *rc::gen::element(Wiring::direct, Wiring::switched);
  const ScheduleSpec ring{.kind = ScheduleKind::ring, .slots = random_int(2, 6)};
  AnyLoad load = random_load(random_int(3, 12));
  for (int rank = 0; rank < load.need.ranks(); ++rank) {
    for (int owner = 0; owner < load.need.ranks(); ++owner) {
      load.need.set(rank, owner, 1 + load.need.pairs(rank, owner));  // everybody needs everything
    }
  }
  check_never_slower(load, ring, Pass::forward, random_machine(wiring));
}

RC_GTEST_PROP(TransferShare, is_never_faster_than_none_where_every_pair_has_a_way_of_its_own, ()) {
  const int ranks = random_int(1, 12);
  const AnyLoad load = random_load(ranks);
  const ScheduleSpec spec = random_spec(ranks);
  Machine machine = random_machine(Wiring::direct);
  const double none = load.seconds(spec, Pass::forward, machine);
  machine.transfer_share = random_int(1, 10) / 10.0;
  RC_ASSERT(load.seconds(spec, Pass::forward, machine) >= none * (1 - kRoundings));
}

/// A hop of t seconds beside a block of b: b + share · t, and a block that is hidden behind its hop
/// hides nothing more than before.
TEST(TransferShare, is_what_a_hop_adds_to_the_block_beside_it) {
  const int ranks = 4;
  const AnyLoad load{.need = full_need(ranks), .tokens = std::vector<std::int64_t>(4, 10)};
  Machine machine = {.name = "any",
                     .forward_flops = 1,
                     .backward_flops = 1,
                     .memory_bytes_per_s = 1,
                     .inside = {.bytes_per_s = 1000},
                     .outside = {.bytes_per_s = 1000},
                     .node_ranks = 64};
  double before = 0;
  for (const double share : {0.0, 0.25, 0.5, 1.0}) {
    machine.transfer_share = share;
    const double block = static_cast<double>(load.need.pairs(0, 0)), hop = 10 * 40 / 1000.0;
    const double seconds = load.seconds({.slots = 2}, Pass::forward, machine);
    EXPECT_NEAR(seconds, ranks * block + (ranks - 1) * share * hop, 1e-9) << share;
    EXPECT_GE(seconds, before);
    before = seconds;
  }
}

/// The case in which more slots were slower: chunks that are ahead of time must not take the way
/// from one that is waited for.
TEST(MoreSlots, are_never_slower_for_a_ring_over_slow_links_between_nodes) {
  const int ranks = 32;
  AnyLoad load{.need = full_need(ranks), .tokens = std::vector<std::int64_t>(32, 4096)};
  Machine machine = {.name = "two levels",
                     .forward_flops = 1e3,
                     .backward_flops = 1e3,
                     .memory_bytes_per_s = 1e9,
                     .inside = {.bytes_per_s = 18e6},
                     .outside = {.bytes_per_s = 1e6},
                     .node_ranks = 8};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    double before = load.seconds({.slots = 2}, pass, machine) * (1 + kRoundings);
    for (const int slots : {3, 4, 8, 16}) {
      EXPECT_LE(load.seconds({.slots = slots}, pass, machine), before) << slots;
    }
  }
}

}  // namespace
}  // namespace ringlab::model
