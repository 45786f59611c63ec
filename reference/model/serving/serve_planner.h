// Ways to split a transformer that serves over devices, weighed.
#pragma once

#include <optional>
#include <vector>

#include "reference/model/serving/serve.h"
#include "reference/model/training/step_planner.h"

namespace ringlab::model {

/// Wishes for a way; those that are not set leave it free. Of those for the split, `replicas`,
/// `kept` and `sharded` do not count.
struct ServeWish {
  SplitWish split = {};
  std::optional<Passed> passed = {};  ///< of a prefill: in a decode queries travel
};

/// Ways on all of splits_for() without replicas and for all neighbours_that_deal(), the simplest first;
/// keys before queries.
std::vector<ServeWay> ways_to_serve(const Serving& serving, const ServeWish& wish,
                                    const Machine& machine);

/// A way with what it costs.
struct ServeChoice {
  ServeWay way = {};
  ServeMemory memory = {};
  ServeTime time = {};
};

/// Costs of all ways_to_serve(), in the order of put_best_first(). Errors as simulate_job().
std::vector<ServeChoice> weigh_serving(const Serving& serving, const ServeWish& wish,
                                       const Machine& machine, const MemoryOf& memory_of,
                                       const WeighedSoFar& tell = {});

/// The most keys of a sequence that the devices have memory for, in rings as long as may be: a prefill
/// behind as many cached tokens, a decode of as many sequences; longest_that_fits().
std::int64_t longest_served(Serving serving, ServeWish wish, const Machine& machine,
                            const MemoryOf& memory_of);

}  // namespace ringlab::model
