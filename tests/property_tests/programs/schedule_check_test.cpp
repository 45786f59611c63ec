// The checker is itself checked: with mistakes planted into correct schedules.
#include "property_tests/programs/schedule_check.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "reference/core/schedule/operation_words.h"
#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab {
namespace {

/// Which operation of which rank, to plant a mistake at.
struct Place {
  int rank = 0;
  std::size_t at = 0;
};

std::vector<Operation>& program(Schedule& schedule, int rank) {
  return schedule.ranks[static_cast<std::size_t>(rank)].operations;
}

Operation& find(Schedule& schedule, int rank, Verb verb, int step, Payload payload) {
  for (Operation& operation : program(schedule, rank)) {
    if (operation.verb == verb && operation.payload == payload && operation.step == step) {
      return operation;
    }
  }
  throw std::runtime_error("no such operation");
}
/// Of messages those of chunks.
Operation& find(Schedule& schedule, int rank, Verb verb, int step) {
  return find(schedule, rank, verb, step, verb == Verb::add ? Payload::gradients : Payload::chunk);
}

void drop(Schedule& schedule, int rank, Verb verb, int step) {
  std::erase(program(schedule, rank), Operation(find(schedule, rank, verb, step)));
}
void repeat(Schedule& schedule, int rank, Verb verb, int step) {
  const Operation& found = find(schedule, rank, verb, step);
  auto& operations = program(schedule, rank);
  operations.insert(operations.begin() + (&found - operations.data()), Operation(found));
}
/// Moves the operation just before another one of the same rank.
void move_before(Schedule& schedule, int rank, const Operation& moved, const Operation& target) {
  auto& operations = program(schedule, rank);
  const Operation taken = moved;
  const Operation where = target;
  std::erase(operations, taken);
  operations.insert(std::ranges::find(operations, where), taken);
}

struct Planted {
  std::string name;
  Pass pass;
  std::function<void(Schedule&)> plant;
  std::string place;   ///< rank and step that a finding must name
  std::string reason;  ///< and what it must say
};
std::ostream& operator<<(std::ostream& out, const Planted& planted) { return out << planted.name; }

/// On a full ring of 5 ranks with 2 slots: rank 2 meets chunks 1, 0, 4 and 3.
std::vector<Planted> planted_mistakes() {
  using enum Verb;
  return {
      {"chunk_skipped", Pass::forward, [](Schedule& s) { drop(s, 2, compute, 3); },
       "rank 2, step 3", "chunk 4 is needed and never computed"},
      {"own_chunk_skipped", Pass::forward, [](Schedule& s) { drop(s, 2, compute, 0); },
       "rank 2, step 0", "chunk 2 is needed and never computed"},
      {"chunk_computed_twice", Pass::forward, [](Schedule& s) { repeat(s, 2, compute, 3); },
       "rank 2, step 3", "computed before"},
      {"compute_before_its_receive", Pass::forward,
       [](Schedule& s) { move_before(s, 2, find(s, 2, compute, 3), find(s, 2, wait_receive, 3)); },
       "rank 2, step 3, compute", "still being received into"},
      {"sent_on_before_its_receive", Pass::forward,
       [](Schedule& s) {
         move_before(s, 2, find(s, 2, post_send, 2), find(s, 2, wait_receive, 2));
       },
       "rank 2, step 2, post_send", "still being received into"},
      {"slot_of_the_step_before", Pass::forward,
       [](Schedule& s) { find(s, 2, compute, 3).slot = 1; }, "rank 2, step 3, compute",
       "slot 1 is still being received into"},
      {"received_into_the_slot_being_computed_on", Pass::forward,
       [](Schedule& s) { move_before(s, 2, find(s, 2, post_receive, 3), find(s, 2, compute, 1)); },
       "rank 2, step 3, post_receive", "still being sent from"},
      {"slot_reused_before_its_send_ended", Pass::forward,
       [](Schedule& s) {
         move_before(s, 2, find(s, 2, post_receive, 3), find(s, 2, wait_send, 1));
       },
       "rank 2, step 3, post_receive", "slot 0 is still being sent from"},
      {"send_never_waited_for", Pass::forward, [](Schedule& s) { drop(s, 2, wait_send, 2); },
       "rank 2, step 2, post_send", "nobody waits for it"},
      {"receive_never_waited_for", Pass::forward, [](Schedule& s) { drop(s, 2, wait_receive, 4); },
       "rank 2, step 4, compute", "still being received into"},
      {"receive_waited_for_twice", Pass::forward,
       [](Schedule& s) { repeat(s, 2, wait_receive, 2); }, "rank 2, step 2, wait_receive",
       "waited for already"},
      {"sent_to_the_wrong_rank", Pass::forward,
       [](Schedule& s) {
         find(s, 2, post_send, 1).peer = 4;
         find(s, 2, wait_send, 1).peer = 4;
       },
       "rank 2, step 1, post_send", "nobody receives it"},
      {"message_that_nobody_sends", Pass::forward,
       [](Schedule& s) {
         drop(s, 2, post_send, 1);
         drop(s, 2, wait_send, 1);
       },
       "rank 3, step 2, post_receive", "nobody sends it"},
      {"sent_twice", Pass::forward, [](Schedule& s) { repeat(s, 2, post_send, 1); },
       "rank 2, step 1, post_send", "it is sent again"},
      {"another_chunk_sent", Pass::forward, [](Schedule& s) { find(s, 2, post_send, 1).slot = -1; },
       "rank 2, step 1, post_send", "the own chunk holds chunk 2"},
      {"received_over_the_own_chunk", Pass::forward,
       [](Schedule& s) { find(s, 2, post_receive, 1).slot = kHome; },
       "rank 2, step 1, post_receive", "it would overwrite the own chunk"},
      {"slots_declared_and_not_used", Pass::forward, [](Schedule& s) { s.ranks[2].slots = 3; },
       "rank 2, all steps", "uses 2 slots and declares 3"},
      {"slot_not_declared", Pass::forward,
       [](Schedule& s) { find(s, 2, post_receive, 2).slot = 2; }, "rank 2, step 2",
       "declares fewer"},
      {"rank_receives_from_itself", Pass::forward,
       [](Schedule& s) { find(s, 2, post_receive, 2).peer = 2; }, "rank 2, step 2",
       "not another rank"},
      {"step_of_the_chunk_before", Pass::forward,
       [](Schedule& s) { find(s, 2, post_receive, 2).step = 1; }, "rank 2, step 1, post_receive",
       "visited in step 2"},
      {"last_gradient_lost", Pass::backward, [](Schedule& s) { drop(s, 2, add, 0); },
       "rank 2, step 0, post_receive_gradient", "neither sent nor added"},
      {"gradient_added_twice", Pass::backward, [](Schedule& s) { repeat(s, 2, add, 2); },
       "rank 2, step 2, add_gradient", "was used up before"},
      {"own_gradient_added_twice", Pass::backward, [](Schedule& s) { repeat(s, 2, add, 2); },
       "step 1, compute of chunk 0", "are added 2 times to the sum of rank 0"},
      {"addend_of_the_step_before", Pass::backward,
       [](Schedule& s) { find(s, 2, add, 3).addend = 2; }, "rank 2, step 3, add_gradient",
       "gradient slot 2 is still being received into"},
      {"gradient_of_a_foreign_chunk_kept", Pass::backward,
       [](Schedule& s) { find(s, 2, compute, 1).gradient = kHome; }, "rank 2, step 1, compute",
       "do not belong into the own sum"},
      {"gradient_sent_before_it_is_complete", Pass::backward,
       [](Schedule& s) {
         move_before(s, 2, find(s, 2, post_send, 2, Payload::gradients), find(s, 2, add, 2));
       },
       "rank 2, step 2, add_gradient", "gradient slot 0 was used up before"},
      {"gradient_overwritten_while_it_is_sent", Pass::backward,
       [](Schedule& s) {
         move_before(s, 2, find(s, 2, compute, 3), find(s, 2, wait_send, 1, Payload::gradients));
       },
       "rank 2, step 3, compute", "gradient slot 1 is still being sent from"},
      {"gradients_in_the_forward_pass", Pass::backward, [](Schedule& s) { s.pass = Pass::forward; },
       "rank 2, step 2", "the forward pass has no gradients"},
  };
}

class PlantedMistake : public testing::TestWithParam<Planted> {};
INSTANTIATE_TEST_SUITE_P(ScheduleCheck, PlantedMistake, testing::ValuesIn(planted_mistakes()),
                         [](const auto& planted) { return planted.param.name; });

TEST_P(PlantedMistake, is_found_and_the_finding_names_rank_step_and_reason) {
  const NeedMatrix need = full_need(5);
  Schedule schedule = build_schedule({}, need, GetParam().pass);
  ASSERT_TRUE(check_schedule(schedule, need).empty());
  GetParam().plant(schedule);
  const auto findings = check_schedule(schedule, need);
  EXPECT_TRUE(std::ranges::any_of(findings, [](const std::string& finding) {
    return finding.find(GetParam().place) != std::string::npos &&
           finding.find(GetParam().reason) != std::string::npos;
  })) << joined(findings);
}

/// Two or three small schedules of each kind, with all their operations' places.
struct Sample {
  NeedMatrix need;
  Schedule schedule;
};
std::vector<Sample> samples() {
  std::vector<Sample> some;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (int slots = 1; slots <= 2; ++slots) {
      for (const ScheduleSpec& spec : every_spec(4, slots)) {
        for (const NeedMatrix& need : {full_need(4), causal_need(4)}) {
          some.push_back({need, build_schedule(spec, need, pass)});
        }
      }
    }
  }
  return some;
}

/// Does `change` to each operation in turn; it says whether it changed anything. Returns how often
/// it did; each time some finding must name the rank.
int change_each(const std::function<bool(Schedule&, Place)>& change) {
  int changed = 0;
  for (const Sample& sample : samples()) {
    for (int rank = 0; rank < 4; ++rank) {
      const auto& operations = sample.schedule.ranks[static_cast<std::size_t>(rank)].operations;
      for (std::size_t at = 0; at < operations.size(); ++at) {
        Schedule wrong = sample.schedule;
        if (!change(wrong, {rank, at})) continue;
        ++changed;
        const std::string findings = joined(check_schedule(wrong, sample.need));
        const std::string where = "rank " + std::to_string(rank) + ", ";
        EXPECT_NE(findings.find(where), std::string::npos)
            << text_of(wrong.spec, 4, wrong.pass) << ", " << where << "operation " << at << ", "
            << action_name(operations[at]) << " of step " << operations[at].step << "\n"
            << findings;
      }
    }
  }
  return changed;
}

TEST(ScheduleCheck, no_operation_of_any_schedule_can_be_left_out) {
  EXPECT_GT(change_each([](Schedule& schedule, Place place) {
              auto& operations = program(schedule, place.rank);
              operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(place.at));
              return true;
            }),
            5000);
}

TEST(ScheduleCheck, no_operation_of_any_schedule_can_be_repeated) {
  EXPECT_GT(change_each([](Schedule& schedule, Place place) {
              auto& operations = program(schedule, place.rank);
              const auto at = operations.begin() + static_cast<std::ptrdiff_t>(place.at);
              operations.insert(at, Operation(*at));
              return true;
            }),
            5000);
}

TEST(ScheduleCheck, no_peer_or_owner_of_any_message_can_be_another_one) {
  EXPECT_GT(change_each([](Schedule& schedule, Place place) {
              Operation& operation = program(schedule, place.rank)[place.at];
              if (operation.peer == kNobody) return false;
              operation.peer = (operation.peer + 1) % 4;
              return true;
            }),
            5000);
  EXPECT_GT(change_each([](Schedule& schedule, Place place) {
              Operation& operation = program(schedule, place.rank)[place.at];
              operation.owner = (operation.owner + 1) % 4;
              return true;
            }),
            5000);
}

TEST(ScheduleCheck, no_slot_of_any_operation_can_be_the_one_after_or_the_one_before) {
  for (const int by : {-1, 1}) {
    EXPECT_GT(change_each([by](Schedule& schedule, Place place) {
                Operation& operation = program(schedule, place.rank)[place.at];
                const bool sum = concerns_gradients(operation);
                (sum ? operation.gradient : operation.slot) += by;
                return true;
              }),
              5000);
    EXPECT_GT(change_each([by](Schedule& schedule, Place place) {
                Operation& operation = program(schedule, place.rank)[place.at];
                if (operation.verb != Verb::add) return false;
                operation.addend += by;
                return true;
              }),
              500);
  }
}

TEST(ScheduleCheck, a_wait_for_the_send_before_the_receive_is_posted_is_a_deadlock_of_both_ranks) {
  const NeedMatrix need = full_need(2);
  Schedule schedule = build_schedule({}, need, Pass::forward);
  for (int rank : {0, 1}) {
    move_before(schedule, rank, find(schedule, rank, Verb::wait_send, 0),
                find(schedule, rank, Verb::compute, 0));
    move_before(schedule, rank, find(schedule, rank, Verb::post_receive, 1),
                find(schedule, rank, Verb::wait_receive, 1));
  }
  EXPECT_EQ(joined(check_schedule(schedule, need)),
            "deadlock unless sends are buffered: "
            "rank 0, step 0, wait_send of chunk 0 to rank 1 waits for "
            "rank 1, step 0, wait_send of chunk 1 to rank 0 waits for "
            "rank 0, step 0, wait_send of chunk 0 to rank 1\n");
}

TEST(ScheduleCheck, a_receive_before_the_send_on_all_ranks_is_a_deadlock_with_buffers_too) {
  const NeedMatrix need = full_need(3);
  Schedule schedule = build_schedule({}, need, Pass::forward);
  for (int rank : {0, 1, 2}) {
    move_before(schedule, rank, find(schedule, rank, Verb::wait_receive, 1),
                find(schedule, rank, Verb::post_send, 0));
  }
  EXPECT_EQ(joined(check_schedule(schedule, need)),
            "deadlock even when sends are buffered: "
            "rank 0, step 1, wait_receive of chunk 2 from rank 2 waits for "
            "rank 2, step 1, wait_receive of chunk 1 from rank 1 waits for "
            "rank 1, step 1, wait_receive of chunk 0 from rank 0 waits for "
            "rank 0, step 1, wait_receive of chunk 2 from rank 2\n");
}

TEST(ScheduleCheck, waiting_for_a_rank_that_has_ended_is_a_deadlock) {
  const NeedMatrix need = full_need(2);
  Schedule schedule = build_schedule({}, need, Pass::forward);
  program(schedule, 1).clear();
  schedule.ranks[1].slots = 0;
  EXPECT_NE(joined(check_schedule(schedule, need))
                .find("rank 0, step 1, wait_receive of chunk 1 from rank 1 waits for rank 1, "
                      "which has ended"),
            std::string::npos);
}

TEST(ScheduleCheck, chunks_that_are_not_needed_may_not_be_computed) {
  EXPECT_NE(joined(check_schedule(build_schedule({}, full_need(3), Pass::forward), causal_need(3)))
                .find("rank 0, step 1, compute of chunk 2: no query of this rank sees that chunk"),
            std::string::npos);
}

TEST(ScheduleCheck, a_schedule_for_another_number_of_ranks_is_one_finding) {
  const Schedule schedule = build_schedule({}, full_need(3), Pass::forward);
  EXPECT_EQ(joined(check_schedule(schedule, full_need(2))),
            "a schedule of 3 ranks for a need matrix of 2\n");
  EXPECT_TRUE(check_schedule(Schedule{}, full_need(0)).empty());
}

/// Writes a number, often out of range, into one field of one operation.
void garble(Operation& operation, int field, int value) {
  if (field == 0) operation.verb = static_cast<Verb>(std::clamp(value, 0, 5));
  if (field == 7) operation.payload = static_cast<Payload>(std::clamp(value, 0, 1));
  if (field == 1) operation.step = value;
  if (field == 2) operation.owner = value;
  if (field == 3) operation.peer = value;
  if (field == 4) operation.slot = value;
  if (field == 5) operation.gradient = value;
  if (field == 6) operation.addend = value;
}

RC_GTEST_PROP(ScheduleCheck, any_garbage_gets_a_verdict_and_no_more_than_the_original_is_accepted,
              ()) {
  const int ranks = random_int(2, 5);
  const NeedMatrix need = full_need(ranks);
  const Pass pass = *rc::gen::element(Pass::forward, Pass::backward);
  const Schedule correct = build_schedule(random_spec(ranks), need, pass);
  Schedule schedule = correct;
  bool moved = false;
  for (int edits = random_int(1, 6); edits > 0; --edits) {
    auto& operations = program(schedule, random_int(0, ranks - 1));
    if (operations.empty()) continue;
    const auto any = [&] {
      return static_cast<std::size_t>(random_int(0, static_cast<int>(operations.size()) - 1));
    };
    const int edit = random_int(0, 10);
    if (edit <= 7) garble(operations[any()], edit, random_int(-2, ranks + 2));
    if (edit == 8) operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(any()));
    if (edit == 9) operations.push_back(Operation(operations[any()]));
    if (edit == 10) std::swap(operations[any()], operations[any()]);
    moved = moved || edit >= 8;
  }
  const bool same = schedule.ranks == correct.ranks;
  const auto findings = check_schedule(schedule, need);
  if (same) RC_ASSERT(findings.empty());
  // Fields that an action does not use, and some swaps, are free; lengths are not.
  for (int rank = 0; rank < ranks && !moved; ++rank) {
    for (std::size_t at = 0; at < program(schedule, rank).size(); ++at) {
      const Operation& now = program(schedule, rank)[at];
      const Operation& then = correct.ranks[static_cast<std::size_t>(rank)].operations[at];
      if (now.owner != then.owner || now.step != then.step) RC_ASSERT(!findings.empty());
    }
  }
}

}  // namespace
}  // namespace ringlab
