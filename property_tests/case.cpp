// A case made into a problem and options.
#include "property_tests/case.h"

#include <algorithm>
#include <cmath>

#include "property_tests/generators/masks.h"

namespace ringlab::verify {

Case fitted(Case c) {
  Shape& s = c.shape;
  for (std::int64_t* extent :
       {&s.batch, &s.kv_heads, &s.head_dim, &s.v_dim, &c.tile_queries, &c.tile_keys}) {
    *extent = std::max<std::int64_t>(1, *extent);
  }
  s.q_tokens = std::max<std::int64_t>(0, s.q_tokens);
  s.kv_tokens = std::max<std::int64_t>(0, s.kv_tokens);
  s.q_heads = std::max(s.q_heads / s.kv_heads, std::int64_t{1}) * s.kv_heads;
  c.ranks = std::max(1, c.ranks);
  c.slots = std::max(1, c.slots);
  c.threads = std::max(1, c.threads);
  c.mask = fitted(c.mask, s);
  for (const ModifierKind kind : kModifierKinds) {
    const ModifierWords known = words_of(kind);
    const double whole = std::ceil(c.modifiers.level(kind) / known.step) * known.step;
    c.modifiers.set(kind, std::clamp(whole, 0.0, known.most));
  }
  return c;
}

double scale_of(ScaleKind scale, std::int64_t head_dim) {
  switch (scale) {
    case ScaleKind::rsqrt:
      return default_scale(head_dim);
    case ScaleKind::unit:
      return 1;
    case ScaleKind::negative:
      return -default_scale(head_dim);
    case ScaleKind::zero:
      return 0;
  }
  return default_scale(head_dim);
}

Problem make_problem(const Case& c) {
  return {.shape = c.shape,
          .dtype = c.dtype,
          .scale = scale_of(c.scale, c.shape.head_dim),
          .mask = make_mask(c.mask, c.shape).bind(c.shape.q_tokens, c.shape.kv_tokens),
          .modifiers = make_modifiers(c.modifiers, c.shape, c.seed)};
}

RunOptions make_options(const Case& c) {
  RunOptions options;
  options.ranks = c.ranks;
  options.layout = c.layout;
  options.direction = c.direction;
  options.transport = c.transport;
  options.delay_seed = c.delay_seed;
  options.rendezvous = c.rendezvous;
  options.timeout_s = 10.0;  // a case takes milliseconds; a hang should not take the whole run
  options.tile_queries = c.tile_queries;
  options.tile_keys = c.tile_keys;
  options.thread_order_seed = c.seed;
  options.schedule = c.schedule;
  options.node_ranks = c.node_ranks;
  options.slots = c.slots;
  options.threads = c.threads;
  return options;
}

bool has_an_empty_row(const Problem& problem) {
  for (std::int64_t i = 0; i < problem.shape.q_tokens; ++i) {
    const KeyInterval keys = problem.mask.interval(i);
    std::int64_t visible = problem.mask.has_bits() ? 0 : keys.size();
    for (std::int64_t j = keys.begin; j < keys.end && visible == 0; ++j) {
      visible += problem.mask.allows(i, j);
    }
    if (visible == 0) return true;
  }
  return false;
}

}  // namespace ringlab::verify
