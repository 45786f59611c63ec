// Message programs of every schedule obey the laws, nothing in them could be left out, and the laws
// find planted mistakes.
#include "property_tests/programs/message_check.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/property_tests/programs/message_mistakes.h"
#include "tests/property_tests/programs/some_schedules.h"

namespace ringlab::ring {
namespace {

void expect_lawful(const ScheduleSpec& spec, const NeedMatrix& need) {
  for (const Pass pass : kPasses) {
    const Schedule schedule = build_schedule(spec, need, pass);
    EXPECT_EQ(joined(check_message_programs(make_message_programs(schedule), schedule)), "")
        << text_of(spec, need.ranks(), pass);
    const StreamProgram streams = make_stream_program(schedule, CopyBy::sender);
    EXPECT_EQ(joined(check_message_programs(make_message_programs(streams, 9), schedule)), "")
        << text_of(spec, need.ranks(), pass) << ", many chunks in a round";
  }
}

TEST(MessagePrograms, of_every_schedule_obey_all_laws) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    for (int slots = 1; slots <= 4; ++slots) {
      for (const ScheduleSpec& spec : every_spec(ranks, slots)) {
        expect_lawful(spec, full_need(ranks));
        expect_lawful(spec, causal_need(ranks));
      }
    }
  }
}

RC_GTEST_PROP(MessagePrograms, of_every_mask_obey_all_laws, ()) {
  const int ranks = random_int(1, 9);
  const ScheduleSpec spec = random_spec(ranks);
  const NeedMatrix need = random_need(ranks);
  for (const Pass pass : kPasses) {
    const Schedule schedule = build_schedule(spec, need, pass);
    RC_LOG() << text_of(spec, ranks, pass);
    RC_ASSERT(joined(check_message_programs(make_message_programs(schedule), schedule)) == "");
  }
}

TEST(MessagePrograms, have_nothing_that_can_be_left_out) {
  for (const int ranks : {2, 3, 5}) {
    for (const ScheduleSpec& spec : every_spec(ranks, 2)) {
      for (const Pass pass : kPasses) {
        const Schedule schedule = build_schedule(spec, full_need(ranks), pass);
        const RankPrograms programs = make_message_programs(schedule);
        for (std::size_t rank = 0; rank < programs.size(); ++rank) {
          for (std::size_t i = 0; i < programs[rank].operations.size(); ++i) {
            RankPrograms less = programs;
            less[rank].operations.erase(less[rank].operations.begin() +
                                        static_cast<std::ptrdiff_t>(i));
            EXPECT_NE(joined(check_message_programs(less, schedule)), "")
                << text_of(spec, ranks, pass) << ": "
                << place(static_cast<int>(rank), programs[rank].operations[i]);
          }
        }
      }
    }
  }
}

/// Some are mistakes only where chunks go round in a circle, and are passed on.
bool is_mistake(const MessageMistake& mistake, const ScheduleSpec& spec) {
  return !mistake.in_rings_only || spec.kind == ScheduleKind::ring;
}

TEST(MessageMistakes, are_found_by_the_laws_wherever_they_are_made) {
  for (const MessageMistake& mistake : message_mistakes()) {
    std::size_t places = 0;
    for (const ScheduleSpec& spec : every_spec(5, 2)) {
      if (!is_mistake(mistake, spec)) continue;
      for (const Pass pass : kPasses) {
        const Schedule schedule = build_schedule(spec, full_need(5), pass);
        for (const RankPrograms& planted : mistake.plant(make_message_programs(schedule))) {
          ++places;
          EXPECT_NE(joined(check_message_programs(planted, schedule)), "")
              << mistake.name << " in " << text_of(spec, 5, pass);
        }
      }
    }
    EXPECT_GT(places, 0u) << mistake.name;
  }
}

/// What is said about the mistake planted at its first place into a backward ring.
std::string finding_about(const std::string& name) {
  const Schedule schedule = build_schedule({}, full_need(4), Pass::backward);
  for (const MessageMistake& mistake : message_mistakes()) {
    if (mistake.name != name) continue;
    const auto planted = mistake.plant(make_message_programs(schedule));
    return planted.empty() ? "" : joined(check_message_programs(planted.front(), schedule));
  }
  return "";
}

TEST(MessageMistakes, are_named) {
  const auto says = [](const std::string& mistake, const std::string& words) {
    const std::string text = finding_about(mistake);
    EXPECT_NE(text.find(words), std::string::npos) << mistake << ": " << text;
  };
  says("send_and_receive_in_separate_groups", "waits for ever for rank");
  says("communicators_in_another_order_on_one_rank", "waits for ever for rank");
  says("end_left_out", "waits for ever for rank");
  says("two_rounds_in_one_group", "touch the same slot");
  says("received_into_a_slot_that_is_attended_to", "nothing makes it come after");
  says("sum_sent_before_it_is_computed", "nothing makes it come after");
  says("other_size", "other sizes: rank");
  says("recorded_after_the_wait_was_issued", "it was not recorded before");
}

TEST(MessagePrograms, with_numbers_out_of_range_are_findings_and_not_crashes) {
  const Schedule schedule = build_schedule({}, full_need(3), Pass::backward);
  const RankPrograms programs = make_message_programs(schedule);
  const std::vector<std::function<void(MessageOperation&)>> spoils = {
      [](MessageOperation& o) { o.owner = 99; },
      [](MessageOperation& o) { o.slot = 77; },
      [](MessageOperation& o) { o.gradient = 9; },
      [](MessageOperation& o) { o.addend = -5; },
      [](MessageOperation& o) { o.event = 1 << 20; },
      [](MessageOperation& o) { o.event = -7; },
      [](MessageOperation& o) { o.stream = StreamKind::compute; },
      [](MessageOperation& o) { std::ranges::for_each(o.ends, [](auto& e) { e.peer = 3; }); },
      [](MessageOperation& o) { std::ranges::for_each(o.ends, [](auto& e) { e.peer = -1; }); },
      [](MessageOperation& o) { std::ranges::for_each(o.ends, [](auto& e) { e.slot = 40; }); },
      [](MessageOperation& o) { std::ranges::for_each(o.ends, [](auto& e) { e.owner = 8; }); }};
  for (std::size_t spoil = 0; spoil < spoils.size(); ++spoil) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < programs[1].operations.size(); ++i) {
      RankPrograms spoiled = programs;
      spoils[spoil](spoiled[1].operations[i]);
      found += check_message_programs(spoiled, schedule).empty() ? 0 : 1;
    }
    EXPECT_GT(found, 0u) << spoil;
  }
  EXPECT_FALSE(
      check_message_programs(programs, build_schedule({}, full_need(4), Pass::backward)).empty());
  EXPECT_FALSE(
      check_message_programs(programs, build_schedule({}, full_need(3), Pass::forward)).empty());
  EXPECT_FALSE(check_message_programs({}, schedule).empty());
  RankPrograms swapped = programs;
  std::swap(swapped[0], swapped[1]);
  EXPECT_FALSE(check_message_programs(swapped, schedule).empty());
}

}  // namespace
}  // namespace ringlab::ring
