// Whatever the streams' timing, a stream program computes the bits of the engine on threads.
#include <gtest/gtest.h>

#include "property_tests/generators/draws.h"
#include "reference/core/error.h"
#include "tests/optimized/ring/stream_trial.h"
#include "tests/repetitions.h"

namespace ringlab::ring {
namespace {

using verify::Case;
using verify::Draws;

std::string text_of(const Trial& trial, const SimulatedStreams& streams) {
  return trial.text() + (streams.copy_by == CopyBy::receiver ? ", receivers" : ", senders") +
         " copy, order " + std::to_string(streams.seed);
}

void expect_bits_of_the_engine(const Trial& trial, std::uint64_t seed) {
  const Bits due = engine_bits(trial);
  for (const CopyBy copy_by : {CopyBy::receiver, CopyBy::sender}) {
    const SimulatedStreams streams{.copy_by = copy_by, .seed = seed};
    ASSERT_EQ(simulated_bits(trial, streams), due) << text_of(trial, streams);
    SimulatedStreams delayed = streams;
    delayed.edit = [&](const StreamProgram& program) { return with_delays(program, seed, 50000); };
    ASSERT_EQ(simulated_bits(trial, delayed), due) << text_of(trial, streams) << ", with delays";
  }
}

/// 13 tokens over 1 … 6 ranks: uneven, and with masks that leave some pairs out.
Case small_case(const std::string& schedule, LayoutKind layout, int ranks, int slots) {
  Case c;
  c.seed = static_cast<std::uint64_t>(100 * ranks + slots);
  c.shape = {.batch = 1,
             .q_heads = 2,
             .kv_heads = 1,
             .q_tokens = 13,
             .kv_tokens = 13,
             .head_dim = 3,
             .v_dim = 2};
  c.mask = slots % 2 == 0 ? "causal" : "full";
  c.layout = layout;
  c.ranks = ranks;
  c.schedule = schedule;
  c.slots = slots;
  return verify::fitted(c);
}

TEST(SimulatedStreams, give_the_bits_of_the_engine_for_all_schedules_layouts_and_slots) {
  for (const std::string schedule :
       {"broadcast", "allgather", "ring", "bidirectional", "double:2", "double:3"}) {
    for (const LayoutKind layout :
         {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
      for (int ranks = 1; ranks <= 6; ++ranks) {
        for (int slots = 1; slots <= 3; ++slots) {
          const Trial trial = make_trial(small_case(schedule, layout, ranks, slots));
          expect_bits_of_the_engine(trial, static_cast<std::uint64_t>(ranks * 7 + slots));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Also more ranks than tokens, empty shards, modifiers, lossy wires, all types.
TEST(SimulatedStreams, give_the_bits_of_the_engine_for_random_cases) {
  Draws draws(31);
  for (int i = 0; i < repetitions(200); ++i) {
    Trial trial = random_trial(draws);
    trial.gradients = draws.chance(70);
    trial.options.wire = static_cast<WireFormat>(draws.below(4));
    trial.options.transport = TransportKind::threads;
    expect_bits_of_the_engine(trial, draws.next());
    if (HasFatalFailure()) return;
  }
}

TEST(SimulatedStreams, copy_as_many_bytes_as_the_engine_sends_without_headers) {
  const Trial trial = make_trial(small_case("ring", LayoutKind::striped, 4, 2));
  NativeSummary summary;
  bits_of_run<float>(trial, [&](const NativeEnds<float>& ends) {
    summary = run_simulated_streams<float>(trial.problem, trial.options, ends);
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
    bits_of_run<Element>(trial, [&](NativeEnds<Element> ends) {
      const auto source = ends.source;
      ends.source = [&](const RankPlace& place) {
        NativeShard<Element> shard = source(place);
        shard.k.extents.tokens += more;
        return shard;
      };
      run_simulated_streams<Element>(trial.problem, trial.options, ends);
    });
  };
  EXPECT_NO_THROW(run(float{}, 0));
  EXPECT_THROW(run(float{}, -1), Error);
  EXPECT_THROW(run(double{}, 0), Error);
}

}  // namespace
}  // namespace ringlab::ring
