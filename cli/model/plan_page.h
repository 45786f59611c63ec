// The answer of `ringlab plan` as a page of pictures.
#pragma once

#include <string>
#include <vector>

#include "reference/model/planner.h"

namespace ringlab::cli {

/// An answer to be drawn.
struct DrawnPlan {
  model::Job job;  ///< with the options of the choice
  model::Machine machine = {};
  model::PlanLimits limits = {};
  model::Choice choice = {};
  std::vector<model::Choice> by_ranks = {};  ///< the best of each number of ranks
  std::string words = {};                    ///< the choice as options
};

/// One HTML file that needs nothing from outside: efficiency and time by the number of ranks, the
/// choice and the best way with slower and faster links, the lanes of the choice. Weighs all ways
/// of the choice's ranks anew five times. Errors as weigh_ways().
std::string plan_page(const DrawnPlan& plan);

}  // namespace ringlab::cli
