// More rows than a kernel takes at a time: a few queries against thousands of keys, hundreds of
// queries against a few keys, two or three tiles of 128 of both, and heads as models have them.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "property_tests/generators/draws.h"
#include "property_tests/generators/reach.h"
#include "property_tests/laws/findings.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/groups.h"

namespace ringlab::verify {
namespace {

struct Range {
  std::int64_t least, most;
};
/// More keys than a thread of the backward kernel takes at once (optimized/cpu/key_slices.h).
constexpr Range kManyKeys{1100, 2600};
constexpr Range kWideWindow{200, 1000};
/// Several times the queries that a kernel keeps in registers.
constexpr Range kManyQueries{65, 300};
/// A block of keys as the engine has it (optimized/cpu/vectors.h).
constexpr std::int64_t kEngineKeys = 128;
/// Tokens that reach into the second tile of 128, the largest common tile.
constexpr Range kSecondTile{129, 160};

std::int64_t at_least(std::int64_t tokens, Range range, std::uint64_t seed) {
  if (tokens >= range.least) return tokens;
  return range.least +
         static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(range.most - range.least));
}

/// The case with one small K/V head on one or two ranks. What decides where sums are cut stays as
/// it is drawn: tiles, layout and mask.
Case narrow(Case c) {
  Shape& s = c.shape;
  s.batch = s.kv_heads = 1;
  s.q_heads = std::min<std::int64_t>(s.q_heads, 2);
  s.head_dim = std::min<std::int64_t>(s.head_dim, 4);
  s.v_dim = std::min<std::int64_t>(s.v_dim, 4);
  c.ranks = std::min(c.ranks, 2);
  if (c.seed % 2 == 0) c.mask = "full";
  return c;
}
/// The shape of simpler cases, which may have any number of keys and queries.
Case with_some_tokens(Case c) {
  c.shape.q_tokens = std::max<std::int64_t>(c.shape.q_tokens, 1);
  c.shape.kv_tokens = std::max<std::int64_t>(c.shape.kv_tokens, 1);
  return c;
}
Case with_many_keys(Case c) {
  c.shape.kv_tokens = at_least(c.shape.kv_tokens, kManyKeys, c.seed);
  c.shape.q_tokens = std::clamp<std::int64_t>(c.shape.q_tokens, 1, 3);
  // Every third case has the engine's tiles: kernels cut such blocks once more.
  c.tile_keys = std::max<std::int64_t>(c.tile_keys, c.seed % 3 == 0 ? kEngineKeys : 16);
  c = narrow(std::move(c));
  if (c.seed % 4 == 1) c.mask = fmt::format("window:{},0", at_least(0, kWideWindow, c.seed / 4));
  return c;
}
Case with_many_queries(Case c) {
  c.shape.q_tokens = at_least(c.shape.q_tokens, kManyQueries, c.seed);
  c.shape.kv_tokens = std::clamp<std::int64_t>(c.shape.kv_tokens, 1, 40);
  c.tile_queries = std::max<std::int64_t>(c.tile_queries, 16);
  return narrow(c);
}

/// The case with queries and keys that mostly reach into the third tile, in later rounds into later
/// tiles; every other case has as many queries as keys.
Case with_many_tiles(Case c) {
  const std::int64_t most = reach_of(c).tile_tokens;
  const Range later{most - 33, most};  // from one key past a tile on
  const auto range = [&](std::uint64_t seed) { return seed % 10 == 0 ? kSecondTile : later; };
  c.shape.q_tokens = at_least(0, range(c.seed), c.seed);
  const bool is_square = c.seed / 10 % 2 == 0;
  c.shape.kv_tokens = is_square ? c.shape.q_tokens : at_least(0, range(c.seed / 20), c.seed / 200);
  c.tile_queries = std::max<std::int64_t>(c.tile_queries, 16);
  c.tile_keys = std::max<std::int64_t>(c.tile_keys, 16);
  return narrow(c);
}

/// The case with one or two heads of 64 or 128 channels and enough keys to fill tiles, in half of
/// the cases whole tiles only. Half have as many queries as keys; with fewer the diagonal of a
/// causal mask crosses tiles anywhere.
Case with_whole_heads(Case c) {
  constexpr std::int64_t kStream = -9;
  constexpr Range kKeys{80, 208}, kWindow{64, 200};
  Draws draws(c.seed, {kStream});
  Shape& s = c.shape;
  s.batch = s.kv_heads = 1;
  s.q_heads = std::min<std::int64_t>(s.q_heads, 2);
  s.head_dim = s.v_dim = draws.chance(50) ? 64 : 128;
  s.kv_tokens = draws.between(kKeys.least, kKeys.most);
  if (draws.chance(50)) s.kv_tokens -= s.kv_tokens % 32;
  s.q_tokens = draws.chance(50) ? s.kv_tokens : draws.between(1, s.kv_tokens);
  c.ranks = std::min(c.ranks, 2);
  c.tile_queries = std::max<std::int64_t>(c.tile_queries, 16);
  c.tile_keys = std::max<std::int64_t>(c.tile_keys, 16);
  const std::int64_t window = draws.between(kWindow.least, kWindow.most);
  const std::string masks[] = {"full", "causal", "causal", fmt::format("window:{},0", window)};
  c.mask = masks[draws.between(0, 3)];
  return c;
}

/// Holds as equals_reference does. Finds mistakes past a block of keys or a register tile: counters
/// that wrap, scratch memory that is used twice, slices whose ends overlap.
LawResult results_equal_exact(const Subject& subject, const Case& c) {
  LawResult forward = equals_exact(measure(subject, make_trial(c)));
  if (forward.outcome != Outcome::held || !subject.can.has(Ability::backward)) return forward;
  return both(forward, equal_exact(measure_gradients(subject, make_gradient_trial(c))));
}

Law many_rows(const char* id, const char* name, const char* statement, Case (*shape_case)(Case),
              int cost = 1) {
  return {.id = id,
          .name = name,
          .statement = statement,
          .shape_case = shape_case,
          .check = results_equal_exact,
          .keeps_modifiers = true,
          .shape_simpler_case = with_some_tokens,
          .cost = cost};
}

}  // namespace

std::vector<Law> many_row_laws() {
  return {many_rows("many_keys", "thousands_of_keys_give_what_the_exact_reference_gives",
                    "O, lse and, where there are any, gradients of a few queries against "
                    "thousands of keys lie within their a-priori bounds",
                    with_many_keys),
          many_rows("whole_heads", "heads_as_models_have_them_give_what_the_exact_reference_gives",
                    "O, lse and, where there are any, gradients of heads of 64 and 128 channels "
                    "against hundreds of keys lie within their a-priori bounds",
                    with_whole_heads, 4),
          many_rows("many_queries", "hundreds_of_queries_give_what_the_exact_reference_gives",
                    "O, lse and, where there are any, gradients of hundreds of queries against "
                    "a few keys lie within their a-priori bounds",
                    with_many_queries),
          many_rows("many_tiles", "second_and_third_tiles_give_what_the_exact_reference_gives",
                    "O, lse and, where there are any, gradients of two or three tiles of 128 "
                    "queries against as many of keys lie within their a-priori bounds",
                    with_many_tiles, 30)};
}

}  // namespace ringlab::verify
