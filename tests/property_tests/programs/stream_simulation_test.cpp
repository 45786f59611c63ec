// Whatever the streams' timing, a stream program computes the bits of the engine on threads.
#include <gtest/gtest.h>

#include "reference/core/error.h"
#include "tests/property_tests/programs/simulation_cases.h"
#include "tests/property_tests/programs/stream_trial.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using verify::Draws;

std::string text_of(const Trial& trial, const SimulatedStreams& streams) {
  return trial.text() + (streams.copy_by == CopyBy::receiver ? ", receivers" : ", senders") +
         " copy, order " + std::to_string(streams.seed);
}

void expect_the_bits_of_the_engine(const Trial& trial, std::uint64_t seed) {
  const Bits due = engine_bits(trial);
  for (const CopyBy copy_by : {CopyBy::receiver, CopyBy::sender}) {
    const SimulatedStreams streams{.copy_by = copy_by, .seed = seed};
    ASSERT_EQ(simulated_bits(trial, streams), due) << text_of(trial, streams);
    SimulatedStreams delayed = streams;
    delayed.edit = [&](const StreamProgram& program) { return with_delays(program, seed, 50000); };
    ASSERT_EQ(simulated_bits(trial, delayed), due) << text_of(trial, streams) << ", with delays";
  }
}

TEST(SimulatedStreams, give_the_bits_of_the_engine_for_all_schedules_layouts_and_slots) {
  for_every_small_trial([](const Trial& trial, int ranks, int slots) {
    expect_the_bits_of_the_engine(trial, static_cast<std::uint64_t>(ranks * 7 + slots));
  });
}

TEST(SimulatedStreams, give_the_bits_of_the_engine_for_random_cases) {
  Draws draws(31);
  for (int i = 0; i < repetitions(200); ++i) {
    const Trial trial = any_trial(draws);
    expect_the_bits_of_the_engine(trial, draws.next());
    if (HasFatalFailure()) return;
  }
}

TEST(SimulatedStreams, copy_as_many_bytes_as_the_engine_sends_without_headers) {
  const Trial trial = make_trial(small_case("ring", LayoutKind::striped, 4, 2));
  RunSummary summary;
  bits_of_run<float>(trial, [&](const Ends<float>& ends) {
    summary = Engine().run(trial.problem, trial.options, ends, OnSimulatedStreams());
  });
  // Causal, striped: every chunk goes everywhere. K and V both passes, and dK and dV.
  std::int64_t sent = 0, received = 0;
  for (const RankStats& rank : summary.ranks) {
    sent += rank.sent_bytes;
    received += rank.received_bytes;
    EXPECT_GT(rank.peak_bytes, 0);
  }
  EXPECT_EQ(sent, 3 * 3 * 13 * (3 + 2) * static_cast<std::int64_t>(sizeof(float)));
  EXPECT_EQ(received, sent);
}

TEST(SimulatedStreams, refuse_rows_of_another_type_or_size) {
  const Trial trial = make_trial(small_case("ring", LayoutKind::striped, 3, 2));
  const auto run = [&]<class Element>(Element, std::int64_t more) {
    bits_of_run<Element>(trial, [&](Ends<Element> ends) {
      const auto source = ends.source;
      ends.source = [&](const RankTokens& tokens) {
        RankRows<Element> shard = source(tokens);
        shard.k.extents.tokens += more;
        return shard;
      };
      Engine().run(trial.problem, trial.options, ends, OnSimulatedStreams());
    });
  };
  EXPECT_NO_THROW(run(float{}, 0));
  EXPECT_THROW(run(float{}, -1), Error);
  EXPECT_THROW(run(double{}, 0), Error);
}

}  // namespace
}  // namespace ringlab::ring
