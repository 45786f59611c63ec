// Whatever the timing of ranks and streams, message programs compute the bits of the engine on
// threads; with planted mistakes they do not, or never come to their end.
#include <gtest/gtest.h>

#include "property_tests/programs/random_order.h"
#include "reference/core/error.h"
#include "tests/property_tests/programs/message_mistakes.h"
#include "tests/property_tests/programs/simulation_cases.h"
#include "tests/property_tests/programs/some_schedules.h"
#include "tests/property_tests/programs/stream_trial.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using verify::Draws;

/// Executes each program as messages between processes.
SimulatedStreams messages(std::uint64_t seed, int chunks_per_round) {
  return {
      .seed = seed,
      .execute = [=](const StreamProgram& program, std::uint64_t order, StreamMachine& machine) {
        execute_in_random_order(make_message_programs(program, chunks_per_round), order, machine);
      }};
}

void expect_bits_of_the_engine(const Trial& trial, std::uint64_t seed) {
  const Bits due = engine_bits(trial);
  for (const int chunks_per_round : {1, 2}) {
    ASSERT_EQ(simulated_bits(trial, messages(seed, chunks_per_round)), due)
        << trial.text() << ", " << chunks_per_round << " chunks per round, order " << seed;
  }
}

TEST(SimulatedMessages, give_the_bits_of_the_engine_for_all_schedules_layouts_and_slots) {
  for_every_small_trial([](const Trial& trial, int ranks, int slots) {
    expect_bits_of_the_engine(trial, static_cast<std::uint64_t>(ranks * 5 + slots));
  });
}

TEST(SimulatedMessages, give_the_bits_of_the_engine_for_random_cases) {
  Draws draws(47);
  for (int i = 0; i < repetitions(200); ++i) {
    const Trial trial = any_trial(draws);
    expect_bits_of_the_engine(trial, draws.next());
    if (HasFatalFailure()) return;
  }
}

/// Whether the programs of one pass, replaced by `planted`, end with these bits.
bool ends_right(const Trial& trial, const Bits& due, const RankPrograms& planted, int order) {
  SimulatedStreams streams = messages(static_cast<std::uint64_t>(order), 1);
  const StreamExecution right = streams.execute;
  streams.execute = [&](const StreamProgram& program, std::uint64_t seed, StreamMachine& machine) {
    if (program.pass != planted.front().pass) return right(program, seed, machine);
    execute_in_random_order(planted, seed, machine);
  };
  try {
    return simulated_bits(trial, streams) == due;
  } catch (const Error&) {
    return false;
  }
}

/// Tries orders until one does not. 57 were needed at most, and 3 on average.
bool is_found(const Trial& trial, const Bits& due, const RankPrograms& planted, int most_orders) {
  for (int order = 1; order <= most_orders; ++order) {
    if (!ends_right(trial, due, planted, order)) return true;
  }
  return false;
}

/// At how many places `mistake` can be made, and at how many of them it shows.
struct Places {
  std::size_t all = 0;
  std::size_t found = 0;
};
Places places_of(const MessageMistake& mistake, const std::string& name, int most_orders) {
  const Trial trial = trial_of_equal_chunks(name);
  const Bits due = engine_bits(trial);
  Places places;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const Schedule schedule = build_schedule(parse_schedule(name), full_need(5), pass);
    for (const RankPrograms& planted : mistake.plant(make_message_programs(schedule))) {
      ++places.all;
      if (is_found(trial, due, planted, most_orders)) ++places.found;
    }
  }
  return places;
}

TEST(MessageMistakes, change_results_or_never_end_in_some_order_of_the_streams) {
  constexpr int kMostOrders = 250;
  for (const MessageMistake& mistake : message_mistakes()) {
    std::size_t all = 0;
    for (const std::string schedule : {"ring", "broadcast", "double:2"}) {
      if (mistake.shows == Shows::in_rings && schedule != "ring") continue;
      const bool shows = mistake.shows != Shows::nowhere;
      const Places places = places_of(mistake, schedule, shows ? kMostOrders : 3);
      EXPECT_EQ(places.found, shows ? places.all : 0) << mistake.name << " in " << schedule;
      all += places.all;
    }
    EXPECT_GT(all, 0u) << mistake.name;
  }
}

}  // namespace
}  // namespace ringlab::ring
