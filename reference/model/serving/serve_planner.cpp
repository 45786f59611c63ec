#include "reference/model/serving/serve_planner.h"

#include <algorithm>

#include "reference/model/training/choices.h"

namespace ringlab::model {

namespace {

/// Tensors that may travel in a ring of so many ranks, keys before queries; of one rank: keys, say.
std::vector<Passed> passed_in(const Serving& serving, const ServeWish& wish, int ranks) {
  if (wish.passed) return {*wish.passed};
  if (serving.decodes()) return {ranks == 1 ? Passed::keys : Passed::queries};
  if (ranks == 1) return {Passed::keys};
  return {Passed::keys, Passed::queries};
}

}  // namespace

std::vector<ServeWay> ways_to_serve(const Serving& serving, const ServeWish& wish,
                                    const Machine& machine) {
  SplitWish one = wish.split;
  one.replicas = 1;
  const Training sizes{.model = serving.model, .tokens = serving.keys()};
  std::vector<ServeWay> ways;
  for (const Split& split : splits_for(sizes, one, machine)) {
    for (const int by_heads : neighbours_that_deal(serving.model, wish.split, machine, split)) {
      for (const Passed passed : passed_in(serving, wish, split.context / by_heads)) {
        ways.push_back({split, passed, by_heads});
      }
    }
  }
  return ways;
}

std::vector<ServeChoice> weigh_serving(const Serving& serving, const ServeWish& wish,
                                       const Machine& machine, const MemoryOf& memory_of,
                                       const WeighedSoFar& tell) {
  std::vector<ServeChoice> choices;
  const std::vector<ServeWay> ways = ways_to_serve(serving, wish, machine);
  for (const ServeWay& way : ways) {
    if (tell) tell(choices.size(), ways.size());
    choices.push_back(
        {way, serve_memory(serving, way, memory_of), serve_time(serving, way, machine)});
  }
  put_best_first(choices, machine.memory_bytes);
  return choices;
}

std::int64_t longest_served(Serving serving, ServeWish wish, const Machine& machine,
                            const MemoryOf& memory_of) {
  wish.split.context = std::nullopt;
  const bool decodes = serving.decodes();
  const std::int64_t cached = serving.cached;
  const std::int64_t asked = cached + (decodes ? 1 : serving.tokens);
  const auto with_keys = [&](std::int64_t keys) {
    if (decodes) {
      serving.cached = keys - 1;
    } else {
      serving.tokens = std::max<std::int64_t>(2, keys - cached);
    }
    return ways_to_serve(serving, wish, machine);
  };
  return longest_that_fits(
      asked, [&](std::int64_t keys) { return !with_keys(keys).empty(); },
      [&](std::int64_t keys) {
        return std::ranges::any_of(with_keys(keys), [&](const ServeWay& way) {
          return serve_memory(serving, way, memory_of).total() <= machine.memory_bytes;
        });
      });
}

}  // namespace ringlab::model
