#include "property_tests/generators/side_draws.h"

#include <cmath>

#include "property_tests/generators/masks.h"

namespace ringlab::verify {
namespace {

enum : std::int64_t { kThreadStream = -4, kBorderStream = -5, kCapStream = -8 };

void draw_threads(Case& c) {
  Draws draws(c.seed, {kThreadStream});
  if (draws.chance(40)) c.threads = static_cast<int>(draws.between(2, 4));
}

void draw_borders_at_tiles(Case& c) {
  Draws draws(c.seed, {kBorderStream});
  if (draws.chance(40)) c.mask = with_borders_at_tiles(c.mask, draws, c.shape.kv_tokens);
}

/// Half of the caps become no whole number: a sixteenth to 32 times what they were.
void draw_cap(Case& c) {
  Draws draws(c.seed, {kCapStream});
  if (!draws.chance(50)) return;
  const auto doublings = static_cast<int>(draws.between(-4, 4));
  c.modifiers.softcap = std::ldexp(c.modifiers.softcap * (1 + draws.unit()), doublings);
}

}  // namespace

void draw_beside(Case& c) {
  draw_threads(c);
  draw_cap(c);
  draw_borders_at_tiles(c);
}

}  // namespace ringlab::verify
