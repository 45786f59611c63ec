// More keys than a kernel takes at a time: a few queries against thousands.
#include <algorithm>

#include "property_tests/laws/findings.h"
#include "property_tests/laws/gradients.h"
#include "property_tests/laws/groups.h"

namespace ringlab::verify {
namespace {

/// Beyond what a thread of the backward kernel takes at once (optimized/cpu/key_slices.h).
constexpr std::int64_t kLeastKeys = 1100, kMostKeys = 2600;

/// What decides where sums are cut stays as it is drawn: tiles, layout and mask.
Case with_many_keys(Case c) {
  const auto range = static_cast<std::uint64_t>(kMostKeys - kLeastKeys);
  Shape& s = c.shape;
  if (s.kv_tokens < kLeastKeys) {
    s.kv_tokens = kLeastKeys + static_cast<std::int64_t>(c.seed % range);
  }
  s.q_tokens = std::clamp<std::int64_t>(s.q_tokens, 1, 3);
  s.batch = s.kv_heads = 1;
  s.q_heads = std::min<std::int64_t>(s.q_heads, 2);
  s.head_dim = std::min<std::int64_t>(s.head_dim, 4);
  s.v_dim = std::min<std::int64_t>(s.v_dim, 4);
  c.ranks = std::min(c.ranks, 2);
  c.tile_keys = std::max<std::int64_t>(c.tile_keys, 16);
  if (c.seed % 2 == 0) c.mask = "full";
  return c;
}

LawResult many_keys(const Subject& subject, const Case& c) {
  LawResult forward = equals_exact(measure(subject, make_trial(c)));
  if (forward.outcome != Outcome::held || !subject.can.backward) return forward;
  return both(forward, equal_exact(measure_gradients(subject, make_gradient_trial(c))));
}

}  // namespace

std::vector<Law> many_key_laws() {
  return {{.id = "many_keys",
           .name = "thousands_of_keys_give_what_the_exact_reference_gives",
           .statement = "O, lse and, where there are any, gradients of a few queries against "
                        "thousands of keys lie within their a-priori bounds",
           .exact = false,
           .shape_case = with_many_keys,
           .not_applicable = applies_to_all,
           .check = many_keys,
           .keeps_modifiers = true}};
}

}  // namespace ringlab::verify
