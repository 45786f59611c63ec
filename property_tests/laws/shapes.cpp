#include "property_tests/laws/shapes.h"

#include <algorithm>

namespace ringlab::verify {

Case plain_values(Case c) {
  c.family = Family::small_ints;
  return c;
}

Case at_least_two_channels(Case c) {
  c.shape.head_dim = std::max<std::int64_t>(2, c.shape.head_dim);
  return c;
}

Case with_tokens(Case c) {
  c.shape.q_tokens = std::max<std::int64_t>(1, c.shape.q_tokens);
  c.shape.kv_tokens = std::max<std::int64_t>(1, c.shape.kv_tokens);
  return fitted(c);
}

Case some_with_few_queries(Case c) {
  Shape& s = c.shape;
  if (c.seed / 2 % 2 != 0 || s.q_tokens == s.kv_tokens) return c;
  s.q_tokens = std::clamp<std::int64_t>(s.q_tokens, 2, 4);
  s.kv_tokens = std::max<std::int64_t>(s.kv_tokens, 12);
  c.tile_keys = std::max<std::int64_t>(c.tile_keys, 32);
  c.ranks = 1;
  return fitted(c);
}

Case with_positive_scale(Case c) {
  if (scale_of(c.scale, c.shape.head_dim) <= 0) c.scale = ScaleKind::rsqrt;
  return c;
}

Case with_a_neighbour(Case c) {
  if (c.shape.batch * c.shape.kv_heads > 1) return c;
  c.shape.kv_heads = 2;
  c.shape.q_heads *= 2;
  return c;
}

}  // namespace ringlab::verify
