// Programs of every schedule obey the laws, and no wait in them could be left out.
#include "property_tests/programs/stream_check.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab::ring {
namespace {

constexpr std::array kCopiers = {CopyBy::receiver, CopyBy::sender};

std::string text_of(const ScheduleSpec& spec, int ranks, Pass pass, CopyBy copy_by) {
  return text_of(spec, ranks, pass) +
         (copy_by == CopyBy::receiver ? ", receivers copy" : ", senders copy");
}

std::size_t count(const StreamProgram& program, StreamAction action) {
  return static_cast<std::size_t>(std::ranges::count_if(
      program.operations, [&](const StreamOperation& o) { return o.action == action; }));
}

void expect_lawful_streams(const ScheduleSpec& spec, const NeedMatrix& need) {
  for (const Pass pass : kPasses) {
    for (const CopyBy copy_by : kCopiers) {
      const Schedule schedule = build_schedule(spec, need, pass);
      const StreamProgram program = make_stream_program(schedule, copy_by);
      EXPECT_EQ(joined(check_stream_program(program, schedule)), "")
          << text_of(spec, need.ranks(), pass, copy_by);
    }
  }
}

TEST(StreamPrograms, of_every_schedule_obey_all_laws) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    for (int slots = 1; slots <= 4; ++slots) {
      for (const ScheduleSpec& spec : every_spec(ranks, slots)) {
        expect_lawful_streams(spec, full_need(ranks));
        expect_lawful_streams(spec, causal_need(ranks));
      }
    }
  }
}

RC_GTEST_PROP(StreamPrograms, of_every_mask_obey_all_laws, ()) {
  const int ranks = random_int(1, 9);
  const ScheduleSpec spec = random_spec(ranks);
  const NeedMatrix need = random_need(ranks);
  for (const Pass pass : kPasses) {
    for (const CopyBy copy_by : kCopiers) {
      const Schedule schedule = build_schedule(spec, need, pass);
      const StreamProgram program = make_stream_program(schedule, copy_by);
      RC_LOG() << text_of(spec, ranks, pass, copy_by);
      RC_ASSERT(joined(check_stream_program(program, schedule)) == "");
    }
  }
}

/// Chunk 5 reaches rank 1 late, for it needs sums to move on elsewhere; chunk 2, for the next step
/// and a slot that is free, queues behind it and costs nothing.
TEST(StreamPrograms, may_let_a_chunk_queue_behind_one_of_an_earlier_step) {
  const std::array<std::string_view, 9> needs = {"101101111", "111001000", "011101111",
                                                 "001111111", "011111111", "110101101",
                                                 "111110000", "110111110", "011000111"};
  const NeedMatrix need = need_where(9, [&](int rank, int owner) {
    return needs[static_cast<std::size_t>(rank)][static_cast<std::size_t>(owner)] == '1';
  });
  expect_lawful_streams({.kind = ScheduleKind::ring, .slots = 3}, need);
}

/// What is wrong with `program` without its operation `number`.
std::string without(const StreamProgram& program, std::size_t number, const Schedule& schedule) {
  StreamProgram less = program;
  less.operations.erase(less.operations.begin() + static_cast<std::ptrdiff_t>(number));
  return joined(check_stream_program(less, schedule));
}

TEST(StreamPrograms, have_nothing_that_can_be_left_out) {
  for (const int ranks : {2, 3, 5}) {
    for (const ScheduleSpec& spec : every_spec(ranks, 2)) {
      for (const Pass pass : kPasses) {
        for (const CopyBy copy_by : kCopiers) {
          const Schedule schedule = build_schedule(spec, full_need(ranks), pass);
          const StreamProgram program = make_stream_program(schedule, copy_by);
          for (std::size_t i = 0; i < program.operations.size(); ++i) {
            EXPECT_NE(without(program, i, schedule), "")
                << text_of(spec, ranks, pass, copy_by) << ": " << place(program.operations[i]);
          }
        }
      }
    }
  }
}

TEST(StreamPrograms, have_nothing_that_can_be_done_twice) {
  for (const ScheduleSpec& spec : every_spec(4, 2)) {
    for (const Pass pass : kPasses) {
      const Schedule schedule = build_schedule(spec, causal_need(4), pass);
      const StreamProgram program = make_stream_program(schedule, CopyBy::receiver);
      for (std::size_t i = 0; i < program.operations.size(); ++i) {
        const StreamAction action = program.operations[i].action;
        if (action == StreamAction::wait || action == StreamAction::copy) continue;
        StreamProgram more = program;
        more.operations.insert(more.operations.begin() + static_cast<std::ptrdiff_t>(i),
                               program.operations[i]);
        EXPECT_NE(joined(check_stream_program(more, schedule)), "")
            << text_of(spec, 4, pass) << ": " << place(program.operations[i]);
      }
    }
  }
}

TEST(StreamPrograms, are_still_lawful_with_delays) {
  for (const ScheduleSpec& spec : every_spec(4, 2)) {
    const Schedule schedule = build_schedule(spec, full_need(4), Pass::backward);
    const StreamProgram program = make_stream_program(schedule, CopyBy::sender);
    const StreamProgram delayed = with_delays(program, 7, 1000);
    EXPECT_GT(count(delayed, StreamAction::delay), count(program, StreamAction::attend));
    EXPECT_EQ(joined(check_stream_program(delayed, schedule)), "");
  }
}

/// Waits for everything that was issued before on any stream: right, and without any overlap.
StreamProgram without_overlap(const StreamProgram& program) {
  StreamProgram slow = program;
  slow.operations.clear();
  for (const StreamOperation& operation : program.operations) {
    if (!touches_slots(operation)) continue;
    if (slow.events > program.events) {
      slow.operations.push_back({.action = StreamAction::wait,
                                 .rank = operation.rank,
                                 .stream = operation.stream,
                                 .event = slow.events - 1});
    }
    slow.operations.push_back(operation);
    slow.operations.push_back({.action = StreamAction::record,
                               .rank = operation.rank,
                               .stream = operation.stream,
                               .event = slow.events++});
  }
  return slow;
}

TEST(StreamPrograms, that_never_overlap_are_told_so_and_nothing_else) {
  const Schedule schedule = build_schedule({.slots = 3}, full_need(5), Pass::backward);
  const StreamProgram slow = without_overlap(make_stream_program(schedule, CopyBy::receiver));
  const std::vector<std::string> findings = check_stream_program(slow, schedule);
  EXPECT_FALSE(findings.empty());
  for (const std::string& finding : findings) {
    EXPECT_NE(finding.find("although its slot is free before"), std::string::npos) << finding;
  }
}

TEST(StreamPrograms, with_numbers_out_of_range_are_findings_and_not_crashes) {
  const Schedule schedule = build_schedule({}, full_need(3), Pass::backward);
  const StreamProgram program = make_stream_program(schedule, CopyBy::receiver);
  const std::vector<std::function<void(StreamOperation&)>> spoils = {
      [](StreamOperation& o) { o.rank = 3; },     [](StreamOperation& o) { o.rank = -1; },
      [](StreamOperation& o) { o.owner = 99; },   [](StreamOperation& o) { o.slot = 77; },
      [](StreamOperation& o) { o.gradient = 9; }, [](StreamOperation& o) { o.from.rank = 5; },
      [](StreamOperation& o) { o.to.slot = -2; }, [](StreamOperation& o) { o.event = 1 << 20; }};
  for (std::size_t spoil = 0; spoil < spoils.size(); ++spoil) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      StreamProgram spoiled = program;
      spoils[spoil](spoiled.operations[i]);
      found += check_stream_program(spoiled, schedule).empty() ? 0 : 1;
    }
    EXPECT_GT(found, 0u) << spoil;
  }
  EXPECT_FALSE(
      check_stream_program(program, build_schedule({}, full_need(4), Pass::backward)).empty());
  EXPECT_FALSE(
      check_stream_program(program, build_schedule({}, full_need(3), Pass::forward)).empty());
}

}  // namespace
}  // namespace ringlab::ring
