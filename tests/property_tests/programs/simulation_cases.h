// The problems on which simulations of stream and message programs are tried.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "property_tests/generators/draws.h"
#include "tests/optimized/ring/engine_trial.h"

namespace ringlab::ring {

/// 13 tokens over 1 … 6 ranks: uneven, and with masks that leave some pairs out.
inline verify::Case small_case(const std::string& schedule, LayoutKind layout, int ranks,
                               int slots) {
  verify::Case c;
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
  const ScheduleSpec spec = parse_schedule(schedule);
  c.schedule = spec.kind;
  c.node_ranks = spec.node_ranks;
  c.slots = slots;
  return verify::fitted(c);
}

/// Calls visit(trial, ranks, slots) for small cases of all schedules and layouts, until one fails.
template <class Visit>
void for_every_small_trial(Visit visit) {
  for (const std::string schedule :
       {"broadcast", "allgather", "ring", "bidirectional", "double:2", "double:3"}) {
    for (const LayoutKind layout :
         {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
      for (int ranks = 1; ranks <= 6; ++ranks) {
        for (int slots = 1; slots <= 3; ++slots) {
          visit(make_trial(small_case(schedule, layout, ranks, slots)), ranks, slots);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Also more ranks than tokens, empty shards, modifiers, lossy wires, all types.
inline Trial any_trial(verify::Draws& draws) {
  Trial trial = random_trial(draws);
  trial.gradients = draws.chance(70);
  trial.options.wire = static_cast<WireFormat>(draws.below(4));
  trial.options.transport = TransportKind::threads;
  return trial;
}

/// 5 ranks, two slots. All chunks have 4 tokens: a mistake that reads another chunk than the one
/// that is due reads wrong numbers, but none beyond the end.
inline Trial trial_of_equal_chunks(const std::string& schedule) {
  verify::Case c;
  c.shape = {.batch = 1,
             .q_heads = 1,
             .kv_heads = 1,
             .q_tokens = 20,
             .kv_tokens = 20,
             .head_dim = 2,
             .v_dim = 3};
  c.ranks = 5;
  const ScheduleSpec spec = parse_schedule(schedule);
  c.schedule = spec.kind;
  c.node_ranks = spec.node_ranks;
  return make_trial(verify::fitted(c));
}

}  // namespace ringlab::ring
