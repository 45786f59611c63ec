// Ways to split a training step over devices, weighed.
#pragma once

#include <optional>
#include <vector>

#include "reference/model/training/step.h"

namespace ringlab::model {

/// Wishes for a split; those that are not set leave it free.
struct SplitWish {
  int devices = 1;
  std::optional<int> context = {}, tensor = {}, stages = {}, replicas = {};
  std::optional<Kept> kept = {};
  std::optional<Sharded> sharded = {};
  std::optional<int> by_heads = {};
};

/// Splits whose numbers fit: tensor groups lie in a node and divide the heads of keys, stages are at most
/// as many as layers, replicas divide the sequences, a rank of a ring has at least two tokens. The
/// simplest first: fewer stages, smaller tensor groups, smaller rings. Of numbers that are not wished
/// stages and tensor groups are powers of two, rings divide the devices, replicas are what is left.
std::vector<Split> splits_for(const Training& training, const SplitWish& wish,
                              const Machine& machine);

/// To how many neighbours in a node heads may be dealt, the fewest first: 1, 2, 4 … that divide the
/// context and the query heads, and divide the K/V heads or are divided by them.
std::vector<int> neighbours_that_deal(const Transformer& model, const SplitWish& wish,
                                      const Machine& machine, const Split& split);

/// All ways of all splits_for(), in their order, for all neighbours_that_deal().
std::vector<StepWay> ways_to_train(const Training& training, const SplitWish& wish,
                                   const Machine& machine);

/// A way with what it costs.
struct StepChoice {
  StepWay way = {};
  RingCost ring = {};
  StepMemory memory = {};
  StepTime time = {};
};

/// Costs of all ways_to_train(): those that fit into the machine's memory, the fastest first, but before
/// it the simplest of those that are as fast (kAsFast); then those that do not fit, the smallest
/// first. Errors as simulate_job().
std::vector<StepChoice> weigh_training(const Training& training, const SplitWish& wish,
                                       const Machine& machine, const MemoryOf& memory_of,
                                       const WeighedSoFar& tell = {});

/// The most tokens of one sequence that all devices have memory for, in rings as long as may be, with as
/// little kept and as much cut as `wish` allows: a multiple of 1024 within a sixteenth. 0 where
/// nothing fits.
std::int64_t longest_context(Training training, SplitWish wish, const Machine& machine,
                             const MemoryOf& memory_of);

}  // namespace ringlab::model
