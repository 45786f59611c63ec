// Rows that see nothing, and sizes next to a tile's or a chunk's edge.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/generators/masks.h"
#include "property_tests/laws/structure/structure.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

/// More queries than keys: under every aligned mask the first rows stand before the first key.
Case empty_rows_case(Case c) {
  const auto extra = static_cast<std::int64_t>(1 + c.seed % 5);
  if (c.shape.q_tokens <= c.shape.kv_tokens) c.shape.q_tokens = c.shape.kv_tokens + extra;
  const std::string whole = "documents:" + std::to_string(c.shape.kv_tokens);
  const CaseMask masks[] = {"causal", "window:0,0", "window:2,0", whole};
  if (std::find(std::begin(masks), std::end(masks), c.mask) == std::end(masks)) {
    c.mask = masks[c.seed / 5 % 4];
  }
  return c;
}

/// Holds by the convention of an empty sum: o = 0, lse = log 0. Finds 0 / 0, -inf - (-inf), and
/// rows that keep what was in memory.
LawResult rows_that_see_nothing_are_zero(const Subject& subject, const Case& c) {
  const Trial prepared = make_trial(c);
  const AttentionOutput got = subject.run(prepared.input(), prepared.options).output;
  LawResult result;
  const auto demand = [&](const char* name, const Tensor<double>& tensor, bool empty, double want) {
    for_each_index(tensor.extents(), [&](auto b, auto h, auto t, auto ch) {
      if ((prepared.problem.mask.interval(t).size() == 0) != empty) return;
      const double value = tensor(b, h, t, ch);
      const bool good = empty ? value == want : std::isfinite(value);
      if (!good) {
        result = broken(fmt::format("query {} sees {}: {} is {}, must be {}", t,
                                    empty ? "no key" : "some key", name, value,
                                    empty ? std::to_string(want) : "finite"));
      }
    });
  };
  for (const bool empty : {true, false}) {
    demand("o", got.out, empty, 0);
    demand("lse", got.lse, empty, -std::numeric_limits<double>::infinity());
  }
  return result;
}

/// A window or documents that end at 16, 32, 64 or 128 keys, or one off, in a sequence so long that
/// they can.
Case border_case(Case c) {
  constexpr std::int64_t kStream = -8;
  Draws draws(c.seed, {kStream});
  c.shape.batch = c.shape.kv_heads = 1;
  c.shape.q_heads = std::min<std::int64_t>(c.shape.q_heads, 2);
  c.shape.kv_tokens = draws.between(40, 136);
  c.shape.q_tokens = draws.chance(50) ? c.shape.kv_tokens : draws.between(1, c.shape.kv_tokens);
  const CaseMask kind = draws.chance(50) ? "window:0,0" : "documents:0";
  c.mask = with_borders_at_tiles(kind, draws, c.shape.kv_tokens);
  return c;
}

/// k · unit - 1, k · unit or k · unit + 1 tokens, for a tile, a chunk or a pair of chunks.
Case boundary_case(Case c) {
  const std::int64_t units[] = {c.tile_keys, c.tile_queries, c.ranks, 2 * c.ranks};
  const std::int64_t unit = units[c.seed % 4];
  const auto multiple = static_cast<std::int64_t>(1 + c.seed / 4 % 3);
  const auto beside = static_cast<std::int64_t>(c.seed / 12 % 3) - 1;
  if (c.seed / 36 % 2 == 0) return border_case(std::move(c));
  const std::int64_t tokens = unit * multiple + beside;
  if (c.shape.q_tokens > tokens) c.shape.q_tokens = tokens;
  c.shape.kv_tokens = tokens;
  if (c.mask != "causal") c.mask = "full";
  return c;
}

/// Holds as equals_reference does. Finds loops that round a length down, or read past it.
LawResult sizes_beside_a_boundary_are_right(const Subject& subject, const Case& c) {
  const Trial prepared = make_trial(c);
  const AttentionInput input = prepared.input();
  const ExactForward exact = exact_forward(input);
  const ForwardTolerance allowed =
      forward_tolerance(input, exact, subject.profile(input.problem, prepared.options));
  const AttentionOutput got = subject.run(input, prepared.options).output;
  const Report report = compare_forward(got, exact, allowed);
  return compared(report);
}

}  // namespace

std::vector<Law> shape_laws() {
  return {
      {.id = "P36",
       .name = "a_row_that_sees_nothing_is_zero_with_lse_minus_infinity",
       .statement = "Empty rows give o = 0 and lse = -inf exactly; rows that see a key are finite.",
       .exact = true,
       .shape_case = empty_rows_case,
       .check = rows_that_see_nothing_are_zero},
      {.id = "P37",
       .name = "sizes_next_to_a_tile_or_chunk_edge_are_right",
       .statement = "One token less or more than a multiple of a tile or of the ranks changes "
                    "nothing, nor do "
                    "windows and documents that end beside a tile of 16 to 128 keys.",
       .shape_case = boundary_case,
       .check = sizes_beside_a_boundary_are_right,
       .keeps_modifiers = true},
  };
}

}  // namespace ringlab::verify
