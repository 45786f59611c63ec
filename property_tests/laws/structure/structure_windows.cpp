// Sliding windows: keys outside a row's window do not exist.
#include <algorithm>
#include <string>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/structure/structure.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

Case window_case(Case c) {
  c = with_tokens(c);
  if (!c.mask.begins_with<WindowMask>()) {
    c.mask = "window:" + std::to_string(c.seed % 4) + "," + std::to_string(c.seed / 4 % 3);
  }
  return c;
}

/// Holds because a hidden key has no term in the sum. Finds windows whose ends are off by one, and
/// tiles that are skipped or taken whole at the edge.
LawResult keys_outside_the_window_change_nothing(const Subject& subject, const Case& c) {
  const std::int64_t row = Draws(c.seed).below(c.shape.q_tokens);
  const KeyInterval seen = make_problem(c).mask.interval(row);
  return unchanged_under(
      subject, c, "keys outside the window of query " + std::to_string(row),
      [&](AttentionTensors& tensors, double poison) {
        for (Tensor<double>* tensor : {&tensors.k, &tensors.v}) {
          fill_tokens(*tensor, 0, seen.begin, poison);
          fill_tokens(*tensor, std::max(seen.begin, seen.end), c.shape.kv_tokens, poison);
        }
      },
      [row](std::int64_t token) { return token == row; });
}

Case full_case(Case c) {
  c = with_tokens(c);
  c.mask = "full";
  return c;
}

/// An end of a window that is beyond all keys, however it is counted: in 31 bits or 32 it would be
/// a few keys or none.
std::int64_t beyond_everything(const Case& c, std::uint64_t seed) {
  constexpr std::int64_t kWidest[] = {std::int64_t{1} << 31, std::int64_t{1} << 32,
                                      std::int64_t{1} << 40};
  const std::int64_t all = c.shape.q_tokens + c.shape.kv_tokens;
  return seed % 4 == 0 ? all : kWidest[seed % 4 - 1] + static_cast<std::int64_t>(seed / 4 % 3);
}

/// Finds windows whose ends overflow, or are cut at the wrong side.
LawResult unlimited_window_is_full(const Subject& subject, const Case& c) {
  const Trial full = make_trial(c);
  Trial windowed = full;
  windowed.problem.mask = Mask({WindowMask{.left = beyond_everything(c, c.seed),
                                           .right = beyond_everything(c, c.seed / 12)}})
                              .bind(c.shape.q_tokens, c.shape.kv_tokens);
  return within_both_bounds("a window wider than everything",
                            run_with_bounds(subject, windowed.input(), full.options),
                            run_with_bounds(subject, full.input(), full.options));
}

Case narrow_window_case(Case c) {
  c = with_tokens(c);
  c.mask = "window:0,0";
  return c;
}

/// Holds because the weight of a single key is 1. Finds windows centred on the wrong key.
LawResult narrowest_window_copies_values(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const AttentionOutput got = attend(subject, trial);
  const std::int64_t first_row = std::max<std::int64_t>(0, -first_position(c));
  std::vector<LawResult> results;
  for (std::int64_t row = first_row; row < c.shape.q_tokens; ++row) {
    results.push_back(
        row_is_value(subject, trial, got, {.row = row, .key = row + first_position(c)}));
  }
  return all_held(results);
}

}  // namespace

std::vector<Law> window_laws() {
  return {
      {.id = "P33",
       .name = "keys_outside_the_window_change_nothing",
       .statement =
           "Window: a row keeps its bits when every key outside its window is overwritten.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = window_case,
       .check = keys_outside_the_window_change_nothing},
      {.id = "P33-wide",
       .name = "a_window_wider_than_everything_hides_nothing",
       .statement =
           "A window beyond both ends, also by more than 32 bits count, gives full attention.",
       .shape_case = full_case,
       .check = unlimited_window_is_full},
      {.id = "P33-narrow",
       .name = "a_window_of_one_key_copies_its_value",
       .statement = "Window 0,0: every row returns the value it is aligned with, to the bit.",
       .exact = true,
       .shape_case = narrow_window_case,
       .check = narrowest_window_copies_values},
  };
}

}  // namespace ringlab::verify
