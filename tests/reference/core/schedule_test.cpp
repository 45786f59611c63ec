// Every schedule that is built obeys the laws; what the laws are worth is in schedule_check_test.
#include "reference/core/schedule/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "property_tests/programs/schedule_check.h"
#include "reference/core/error.h"
#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab {
namespace {

TEST(Schedule, names_are_read_and_written) {
  for (const std::string name :
       {"broadcast", "allgather", "ring", "bidirectional", "double:1", "double:12"}) {
    EXPECT_EQ(schedule_name(parse_schedule(name)), name);
  }
  EXPECT_EQ(parse_schedule("double:12").node_ranks, 12);
  for (const std::string name : {"", "rings", "Ring", "double", "double:", "double:0", "double:-1",
                                 "double:2x", "double: 2", "double:99999999999"}) {
    EXPECT_THROW(parse_schedule(name), Error) << name;
  }
}

TEST(Schedule, specs_without_slots_or_node_ranks_are_refused) {
  EXPECT_THROW(build_schedule({.slots = 0}, full_need(2), Pass::forward), Error);
  EXPECT_THROW(build_schedule({.kind = ScheduleKind::double_ring, .node_ranks = 0}, full_need(2),
                              Pass::forward),
               Error);
}

TEST(Schedule, every_kind_obeys_all_laws_on_1_to_9_ranks_with_1_to_4_slots) {
  int checked = 0;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int slots = 1; slots <= 4; ++slots) {
      for (const ScheduleSpec& spec : every_spec(ranks, slots)) {
        for (const Pass pass : {Pass::forward, Pass::backward}) {
          const NeedMatrix need = full_need(ranks);
          const auto findings = check_schedule(build_schedule(spec, need, pass), need);
          ASSERT_TRUE(findings.empty()) << text_of(spec, ranks, pass) << "\n" << joined(findings);
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, 4 * 2 * 2 * (9 * 4 + (2 + 10) * 9 / 2));
}

TEST(Schedule, causal_chunks_travel_only_where_they_are_needed_and_obey_all_laws) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const ScheduleSpec& spec : every_spec(ranks, 1 + ranks % 3)) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const NeedMatrix need = causal_need(ranks);
        const auto findings = check_schedule(build_schedule(spec, need, pass), need);
        ASSERT_TRUE(findings.empty()) << text_of(spec, ranks, pass) << "\n" << joined(findings);
      }
    }
  }
}

/// Thirty schedules per case: generating is what takes time.
void check_many(int ranks, const NeedMatrix& need) {
  for (int i = 0; i < 15; ++i) {
    const ScheduleSpec spec = random_spec(ranks);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const auto findings = check_schedule(build_schedule(spec, need, pass), need);
      if (!findings.empty()) RC_FAIL(text_of(spec, ranks, pass) + "\n" + joined(findings));
    }
  }
}

RC_GTEST_PROP(Schedule, obeys_all_laws_whatever_is_needed, ()) {
  const int ranks = random_int(1, 17);
  check_many(ranks, random_need(ranks));
}

RC_GTEST_PROP(Schedule, obeys_all_laws_for_masks_and_layouts, ()) {
  const int ranks = random_int(1, 17);
  std::vector<std::int64_t> lengths;
  check_many(ranks, need_of_a_mask(ranks, &lengths));
}

/// The chunks a rank computes on, in order.
std::vector<int> visits_of(const Schedule& schedule, int rank) {
  std::vector<int> owners;
  for (const Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)].operations) {
    if (operation.verb == Verb::compute) owners.push_back(operation.owner);
  }
  return owners;
}

RC_GTEST_PROP(Schedule, slots_and_passes_do_not_change_the_order_of_visits, ()) {
  const int ranks = random_int(1, 17);
  const NeedMatrix need = random_need(ranks);
  const ScheduleSpec spec = random_spec(ranks);
  ScheduleSpec other = spec;
  other.slots = random_int(1, 6);
  const Schedule one = build_schedule(spec, need, Pass::forward);
  const Schedule two = build_schedule(other, need, Pass::backward);
  for (int rank = 0; rank < ranks; ++rank) {
    RC_ASSERT(visits_of(one, rank) == visits_of(two, rank));
  }
}

TEST(Schedule, a_ring_meets_the_chunks_of_its_predecessors_in_turn) {
  const ScheduleSpec ring{};
  EXPECT_EQ(visits_of(build_schedule(ring, full_need(4), Pass::forward), 1),
            (std::vector<int>{1, 0, 3, 2}));
  const ScheduleSpec both{.kind = ScheduleKind::bidirectional};
  EXPECT_EQ(visits_of(build_schedule(both, full_need(4), Pass::forward), 1),
            (std::vector<int>{1, 0, 2, 3}));
  const ScheduleSpec nodes{.kind = ScheduleKind::double_ring, .node_ranks = 2};
  EXPECT_EQ(visits_of(build_schedule(nodes, full_need(4), Pass::forward), 1),
            (std::vector<int>{1, 0, 3, 2}));
}

TEST(Schedule, a_rank_without_queries_and_keys_has_nothing_to_do) {
  const NeedMatrix need =
      need_where(3, [](int rank, int owner) { return rank != 1 && owner != 1; });
  const Schedule schedule = build_schedule({}, need, Pass::backward);
  EXPECT_TRUE(schedule.ranks[1].operations.empty());
  EXPECT_EQ(schedule.ranks[1].slots, 0);
  EXPECT_TRUE(check_schedule(schedule, need).empty());
}

}  // namespace
}  // namespace ringlab
