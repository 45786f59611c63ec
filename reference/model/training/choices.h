// The choice among plans of whole models: memory first, then time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "reference/model/planner.h"

namespace ringlab::model {

/// Sorts choices, which come the simplest first: those that fit into so many bytes, the fastest first,
/// but before it the simplest of those that are as fast (kAsFast); then those that do not fit, the
/// smallest first.
template <class Choice>
void put_best_first(std::vector<Choice>& choices, double memory_bytes) {
  if (choices.empty()) return;
  const auto rank = [&](const Choice& choice) {
    const bool holds = choice.memory.total() <= memory_bytes;
    return std::pair(!holds, holds ? choice.time.total() : choice.memory.total());
  };
  const auto is_before = [&](const Choice& a, const Choice& b) { return rank(a) < rank(b); };
  const auto fastest = rank(*std::ranges::min_element(choices, is_before));
  const auto simplest = std::ranges::find_if(choices, [&](const Choice& choice) {
    return rank(choice) <= std::pair(fastest.first, fastest.second * (1 + kAsFast));
  });
  const Choice chosen = *simplest;
  choices.erase(simplest);
  std::ranges::stable_sort(choices, is_before);
  choices.insert(choices.begin(), chosen);
}

/// The most tokens that fit: a multiple of 1024 within a sixteenth, 0 where nothing does, and no fewer
/// than `asked` where these do. `has_ways`:
/// there are splits with so many; a token for each device at least.
std::int64_t longest_that_fits(std::int64_t asked,
                               const std::function<bool(std::int64_t)>& has_ways,
                               const std::function<bool(std::int64_t)>& fits);

}  // namespace ringlab::model
