#include "reference/model/training/step_planner.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "reference/model/training/choices.h"

namespace ringlab::model {
namespace {

constexpr int kLeastTokens = 2;  // of a rank's chunk: a zigzag layout has two pieces

/// The number that is wished, or 1, 2, 4 … up to `most`.
std::vector<int> powers(const std::optional<int>& wish, std::int64_t most) {
  if (wish) return {*wish};
  std::vector<int> all;
  for (std::int64_t number = 1; number <= most; number *= 2)
    all.push_back(static_cast<int>(number));
  return all;
}

/// The number that is wished, or all divisors of `whole`, the smallest first.
std::vector<int> divisors(const std::optional<int>& wish, int whole) {
  if (wish) return {*wish};
  std::vector<int> all;
  for (int number = 1; number <= whole; ++number) {
    if (whole % number == 0) all.push_back(number);
  }
  return all;
}

bool fits(const Training& training, const SplitWish& wish, const Machine& machine,
          const Split& split) {
  const Transformer& m = training.model;
  return split.devices() == wish.devices &&
         split.replicas == wish.replicas.value_or(split.replicas) &&
         split.tensor <= machine.node_ranks && m.kv_heads % split.tensor == 0 &&
         split.stages <= m.layers && training.sequences % split.replicas == 0 &&
         training.tokens >= std::int64_t{kLeastTokens} * split.context;
}

/// Rings and all-to-alls on the devices of a context, the simplest first.
std::vector<StepWay> ways_of_split(const Training& training, const SplitWish& wish,
                                   const Machine& machine, const Split& split) {
  std::vector<StepWay> ways;
  for (const int by_heads : neighbours_that_deal(training.model, wish, machine, split)) {
    const StepWay way{.split = split, .by_heads = by_heads};
    ways.push_back(way);
    const int node = ring_machine(machine, way.group()).node_ranks;
    if (node == 1 || way.ring() <= node || way.ring() % node != 0) continue;
    ways.push_back(way);
    ways.back().by_nodes = true;
  }
  return ways;
}

/// Rings of a way, in the better schedule, for all ways with as large rings and tensor groups.
class RingCosts {
 public:
  RingCosts(const Training& training, const Machine& machine, const MemoryOf& memory_of)
      : training_(training), machine_(machine), memory_of_(memory_of) {}

  const RingCost& of(const StepWay& way) {
    const auto key = std::tuple(way.split.context, way.split.tensor, way.by_nodes, way.by_heads);
    const auto [entry, is_new] = costs_.try_emplace(key);
    if (is_new) entry->second = ring_cost(training_, way, machine_, memory_of_);
    return entry->second;
  }

 private:
  const Training& training_;
  const Machine& machine_;
  const MemoryOf& memory_of_;
  std::map<std::tuple<int, int, bool, int>, RingCost> costs_;
};

}  // namespace

std::vector<Split> splits_for(const Training& training, const SplitWish& wish,
                              const Machine& machine) {
  std::vector<Split> all;
  const int devices = wish.devices;
  for (const int stages :
       powers(wish.stages, std::min<std::int64_t>(devices, training.model.layers))) {
    for (const int tensor : powers(wish.tensor, machine.node_ranks)) {
      for (const int context : divisors(wish.context, devices)) {
        const std::int64_t group = std::int64_t{stages} * tensor * context;
        if (group > devices) continue;
        const Split split{context, tensor, stages, static_cast<int>(devices / group)};
        if (fits(training, wish, machine, split)) all.push_back(split);
      }
    }
  }
  return all;
}

std::vector<int> neighbours_that_deal(const Transformer& m, const SplitWish& wish,
                                      const Machine& machine, const Split& split) {
  const std::int64_t heads = m.heads / split.tensor, kv_heads = m.kv_heads / split.tensor;
  std::vector<int> all = powers(wish.by_heads, machine.node_ranks / split.tensor);
  std::erase_if(all, [&](int by_heads) {
    return split.context % by_heads != 0 || heads % by_heads != 0 ||
           (kv_heads % by_heads != 0 && by_heads % kv_heads != 0);
  });
  return all;
}

std::vector<StepWay> ways_to_train(const Training& training, const SplitWish& wish,
                                   const Machine& machine) {
  std::vector<StepWay> ways;
  for (const Split& split : splits_for(training, wish, machine)) {
    const std::vector<StepWay> of_split = ways_of_split(training, wish, machine, split);
    for (const Kept kept : {Kept::everything, Kept::attention, Kept::inputs}) {
      if (kept != wish.kept.value_or(kept)) continue;
      for (const Sharded sharded : {Sharded::optimizer, Sharded::weights}) {
        if (sharded != wish.sharded.value_or(sharded)) continue;
        const bool nothing_to_cut = split.context * split.replicas == 1;
        if (sharded == Sharded::weights && nothing_to_cut && !wish.sharded) continue;
        for (StepWay way : of_split) {
          way.kept = kept;
          way.sharded = sharded;
          ways.push_back(way);
        }
      }
    }
  }
  return ways;
}

std::vector<StepChoice> weigh_training(const Training& training, const SplitWish& wish,
                                       const Machine& machine, const MemoryOf& memory_of,
                                       const WeighedSoFar& tell) {
  RingCosts rings(training, machine, memory_of);
  std::vector<StepChoice> choices;
  const std::vector<StepWay> ways = ways_to_train(training, wish, machine);
  for (const StepWay& way : ways) {
    if (tell) tell(choices.size(), ways.size());
    const RingCost& ring = rings.of(way);
    choices.push_back({way, ring, step_memory(training, way, ring.bytes),
                       step_time(training, way, ring, machine)});
  }
  put_best_first(choices, machine.memory_bytes);
  return choices;
}

std::int64_t longest_context(Training training, SplitWish wish, const Machine& machine,
                             const MemoryOf& memory_of) {
  const std::int64_t asked = training.tokens;
  training.sequences = 1;
  wish.replicas = 1;
  wish.context = std::nullopt;
  wish.kept = wish.kept.value_or(Kept::inputs);
  wish.sharded = wish.sharded.value_or(Sharded::weights);
  const auto fits_somewhere = [&](std::int64_t tokens) {
    training.tokens = tokens;
    return std::ranges::any_of(ways_to_train(training, wish, machine), [&](const StepWay& way) {
      const double ring = ring_bytes(training, way, machine, memory_of);
      return step_memory(training, way, ring).total() <= machine.memory_bytes;
    });
  };
  const auto has_ways = [&](std::int64_t tokens) {
    training.tokens = tokens;
    return !ways_to_train(training, wish, machine).empty();
  };
  return longest_that_fits(asked, has_ways, fits_somewhere);
}

}  // namespace ringlab::model
