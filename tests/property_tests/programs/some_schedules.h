// Specs, need matrices and chunk lengths that the tests of schedules go through.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "reference/core/layout.h"
#include "reference/core/mask.h"
#include "reference/core/schedule/operation_words.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab {

inline constexpr std::array kPasses = {Pass::forward, Pass::backward};

/// Every kind in both directions; double:W with W 1 … ranks+1.
inline std::vector<ScheduleSpec> every_spec(int ranks, int slots) {
  std::vector<ScheduleSpec> specs;
  for (const RingDirection direction : {RingDirection::next, RingDirection::previous}) {
    for (const ScheduleKind kind : kScheduleKinds) {
      const int widest = schedule_traits(kind).has_nodes ? ranks + 1 : 1;
      for (int width = 1; width <= widest; ++width) {
        specs.push_back(
            {.kind = kind, .node_ranks = width, .direction = direction, .slots = slots});
      }
    }
  }
  return specs;
}

inline NeedMatrix need_where(int ranks, const auto& needs) {
  NeedMatrix need(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int owner = 0; owner < ranks; ++owner) need.set(rank, owner, needs(rank, owner) ? 1 : 0);
  }
  return need;
}
inline NeedMatrix full_need(int ranks) {
  return need_where(ranks, [](int, int) { return true; });
}
inline NeedMatrix causal_need(int ranks) {
  return need_where(ranks, [](int rank, int owner) { return owner <= rank; });
}

inline std::string text_of(const ScheduleSpec& spec, int ranks, Pass pass) {
  return schedule_name(spec) + (spec.direction == RingDirection::next ? ", next" : ", previous") +
         ", " + std::to_string(spec.slots) + " slots, " + std::to_string(ranks) + " ranks" + ", " +
         std::string(pass_name(pass));
}

/// Different lengths, so that counts of tokens tell owners apart.
inline std::vector<std::int64_t> some_lengths(int ranks) {
  std::vector<std::int64_t> lengths;
  for (int rank = 0; rank < ranks; ++rank) lengths.push_back(1 + 3 * rank + rank * rank);
  return lengths;
}

inline int random_int(int least, int most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most + 1));
}

inline ScheduleSpec random_spec(int ranks) {
  const std::vector<ScheduleSpec> specs = every_spec(ranks, random_int(1, 5));
  return specs[static_cast<std::size_t>(random_int(0, static_cast<int>(specs.size()) - 1))];
}

/// Dense, sparse, causal-like, with empty rows (ranks without queries) and columns (without keys).
inline NeedMatrix random_need(int ranks) {
  const int percent = *rc::gen::element(5, 30, 70, 95, 100);
  const bool causal = *rc::gen::arbitrary<bool>();
  const int lost_row = random_int(-2, ranks - 1);
  const int lost_column = random_int(-2, ranks - 1);
  return need_where(ranks, [&](int rank, int owner) {
    if (rank == lost_row || owner == lost_column || (causal && owner > rank)) return false;
    return random_int(0, 99) < percent;
  });
}

/// A real mask over real layouts, also with fewer tokens than ranks.
inline NeedMatrix need_of_a_mask(int ranks, std::vector<std::int64_t>* lengths) {
  const std::int64_t tokens = random_int(0, 70);
  const std::string left = std::to_string(random_int(0, 30));
  const std::string half = std::to_string(tokens / 2);
  const std::string rest = std::to_string(tokens - tokens / 2);
  const std::string text = *rc::gen::element<std::string>(
      "full", "causal", "window:" + left + ",0", "window:" + left + "," + left,
      "documents:" + half + "," + rest, "causal+documents:" + half + "," + rest, "prefix:" + left);
  const auto any_layout =
      rc::gen::element(LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag);
  const Layout queries(*any_layout, tokens, ranks);
  const Layout keys(*any_layout, tokens, ranks);
  for (int rank = 0; rank < ranks; ++rank) lengths->push_back(keys.positions(rank).size());
  return need_matrix(parse_mask(text).bind(tokens, tokens), queries, keys);
}

inline std::string joined(const std::vector<std::string>& findings) {
  std::string text;
  for (const std::string& finding : findings) text += finding + "\n";
  return text;
}

}  // namespace ringlab
