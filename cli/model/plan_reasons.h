// The reasons of a plan: what every other choice would cost, and what would change it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/line/output.h"
#include "reference/model/planner.h"

namespace ringlab::cli {

/// One part of a way to run, and a sentence on why it is as it is.
struct Reason {
  std::string part;      ///< "layout", "schedule", "slots"
  std::string sentence;  ///< "zigzag: contiguous takes 1.88 times as long, striped is no faster"
};

/// Each part of the choice next to ways that differ in this part only.
std::vector<Reason> reasons_for(const std::vector<model::Choice>& ways, std::size_t chosen,
                                const model::PlanLimits& limits);

/// A change of the machine, "links half as fast", and the choices after it.
struct WhatIf {
  std::string change;
  double seconds = 0;       ///< of the choice, after the change
  model::Choice best = {};  ///< the best of all ways then
  bool same = true;         ///< the choice is still as good as any
};

/// The change to links `times` as fast. Errors as weigh_ways().
WhatIf with_other_links(const model::Job& job, const model::Machine& machine,
                        const model::Choice& choice, const model::PlanLimits& limits,
                        const model::MemoryOf& memory_of, double times);

/// Changes: links of half the speed, and one rank a tenth slower. Errors as weigh_ways().
std::vector<WhatIf> what_would_change(const model::Job& job, const model::Machine& machine,
                                      const model::Choice& choice, const model::PlanLimits& limits,
                                      const model::MemoryOf& memory_of);

}  // namespace ringlab::cli
