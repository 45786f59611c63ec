// The ways to attention over a long sequence that `ringlab compare` runs side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/subject_list.h"
#include "reference/core/problem.h"
#include "reference/core/run.h"

namespace ringlab::cli {

struct Way {
  std::string name;           ///< "ring, zigzag"
  std::string subject;        ///< that runs it
  RunOptions options = {};    ///< ranks, layout, schedule, wire
  Mask mask = {};             ///< bound; the problem's, or less of it
  bool approximates = false;  ///< looks at fewer pairs than were asked for
  bool by_heads = false;      ///< ranks have some of the heads, with all their pairs
  std::int64_t group = 0;  ///< tokens that a mean stands for: pooled_subject(); 0: find_subject()
};

/// Every way that can take the problem on `ranks` ranks: first one device; all keys gathered, heads
/// dealt to ranks, rings in each layout and schedule, a narrow wire, and three that look at fewer
/// pairs. Rings of rings have nodes of half of the ranks, where there are four and more.
std::vector<Way> ways_of(const Problem& problem, int ranks);

}  // namespace ringlab::cli
