// The laws, and the simulation, are themselves checked: with mistakes planted into stream programs.
#include "tests/property_tests/programs/stream_mistakes.h"

#include <gtest/gtest.h>

#include "property_tests/programs/stream_check.h"
#include "tests/property_tests/programs/simulation_cases.h"
#include "tests/property_tests/programs/some_schedules.h"
#include "tests/property_tests/programs/stream_trial.h"

namespace ringlab::ring {
namespace {

TEST(StreamMistakes, are_found_by_the_laws_wherever_they_are_made) {
  for (const StreamMistake& mistake : stream_mistakes()) {
    std::size_t places = 0;
    for (const ScheduleSpec& spec : every_spec(5, 2)) {
      for (const Pass pass : kPasses) {
        for (const CopyBy copy_by : {CopyBy::receiver, CopyBy::sender}) {
          const Schedule schedule = build_schedule(spec, full_need(5), pass);
          for (const StreamProgram& planted :
               mistake.plant(make_stream_program(schedule, copy_by))) {
            if (!mistake.changes_results && spec.kind != ScheduleKind::ring) continue;
            ++places;
            EXPECT_NE(joined(check_stream_program(planted, schedule)), "")
                << mistake.name << " in " << text_of(spec, 5, pass);
          }
        }
      }
    }
    EXPECT_GT(places, 0u) << mistake.name;
  }
}

/// Replaces the program of one pass.
SimulatedStreams with_program(const StreamProgram& planted, int seed) {
  return {.seed = static_cast<std::uint64_t>(seed),
          .edit = [&planted](const StreamProgram& program) {
            return program.pass == planted.pass ? planted : program;
          }};
}

/// Tries orders until one gives other bits. With 4 ranks 38 were needed at most, and 3 on average.
bool is_found(const Trial& trial, const Bits& due, const StreamProgram& planted) {
  constexpr int kMostOrders = 150;
  for (int order = 1; order <= kMostOrders; ++order) {
    if (simulated_bits(trial, with_program(planted, order)) != due) return true;
  }
  return false;
}

TEST(StreamMistakes, change_results_in_some_order_of_the_streams) {
  const Trial trial = trial_of_equal_chunks("ring");
  const Bits due = engine_bits(trial);
  for (const StreamMistake& mistake : stream_mistakes()) {
    std::size_t places = 0, found = 0;
    for (const Pass pass : kPasses) {
      const Schedule schedule = build_schedule({}, full_need(5), pass);
      for (const StreamProgram& planted :
           mistake.plant(make_stream_program(schedule, CopyBy::receiver))) {
        ++places;
        if (is_found(trial, due, planted)) ++found;
      }
    }
    EXPECT_GT(places, 0u) << mistake.name;
    EXPECT_EQ(found, mistake.changes_results ? places : 0) << mistake.name;
  }
}

}  // namespace
}  // namespace ringlab::ring
