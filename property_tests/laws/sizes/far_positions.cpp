// Queries that stand behind more keys than 16 bits count, of which they see the last.
#include <fmt/format.h>

#include <algorithm>

#include "property_tests/generators/reach.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/groups.h"

namespace ringlab::verify {
namespace {

/// The case with a small K/V head and windows, so that the few keys seen are all the work there is.
Case behind_many_keys(Case c) {
  Shape& s = c.shape;
  s.batch = s.kv_heads = 1;
  s.q_heads = std::min<std::int64_t>(s.q_heads, 2);
  s.head_dim = std::min<std::int64_t>(s.head_dim, 3);
  s.v_dim = std::min<std::int64_t>(s.v_dim, 3);
  s.q_tokens = std::clamp<std::int64_t>(s.q_tokens, 1, 6);
  s.kv_tokens = reach_of(c).keys_before + 1 + static_cast<std::int64_t>(c.seed % 60);
  c.ranks = std::min(c.ranks, 3);
  c.tile_queries = std::max<std::int64_t>(c.tile_queries, 32);
  c.tile_keys = std::max<std::int64_t>(c.tile_keys, 32);
  const std::uint64_t left = c.seed % 50, right = c.seed / 50 % 3;
  c.mask = c.seed % 2 == 0 ? fmt::format("causal+window:{},{}", left, right)
                           : fmt::format("window:{},{}", left, right);
  return c;
}

/// The shape of simpler cases, which may have any number of keys.
Case behind_some_keys(Case c) {
  c.shape.q_tokens = std::max<std::int64_t>(c.shape.q_tokens, 1);
  c.shape.kv_tokens = std::max<std::int64_t>(c.shape.kv_tokens, 1);
  return c;
}

/// Holds as equals_reference does. Finds positions, and indices of keys, that are kept in 16 bits,
/// in masks, in ALiBi and in the generator of dropout.
LawResult far_rows_equal_exact(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  LawResult forward = equals_exact(measure(subject, trial.base));
  if (forward.outcome == Outcome::broken || !subject.can.has(Ability::backward)) return forward;
  return both(forward, equal_exact(measure_gradients(subject, trial)));
}

}  // namespace

std::vector<Law> far_position_laws() {
  return {{.id = "far_positions",
           .name = "queries_behind_65536_keys_and_more_see_the_right_ones",
           .statement = "O, lse and, where there are any, gradients of queries that see the last "
                        "of more keys than 16 bits count lie within their a-priori bounds",
           .shape_case = behind_many_keys,
           .check = far_rows_equal_exact,
           .keeps_modifiers = true,
           .shape_simpler_case = behind_some_keys,
           .cost = 40}};
}

}  // namespace ringlab::verify
