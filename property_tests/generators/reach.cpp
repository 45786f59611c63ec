#include "property_tests/generators/reach.h"

#include <algorithm>
#include <utility>

#include "property_tests/generators/cases.h"

namespace ringlab::verify {
namespace {

/// A size beyond those that random_case() draws.
std::int64_t beyond(Draws& draws, std::int64_t Reach::*size, const Reach& reach) {
  return draws.between(kReaches.front().*size + 1, reach.*size);
}

void shorten(Shape& s, std::int64_t most_tokens, std::int64_t most_channels) {
  s.q_tokens = std::min(s.q_tokens, most_tokens);
  s.kv_tokens = std::min(s.kv_tokens, most_tokens);
  s.head_dim = std::min(s.head_dim, most_channels);
  s.v_dim = std::min(s.v_dim, most_channels);
}

void few_heads(Shape& s) {
  s.batch = 1;
  s.q_heads = std::min<std::int64_t>(2, s.q_heads);
  s.kv_heads = 1;
}

}  // namespace

const Reach& reach_of_round(std::uint64_t round) {
  const Reach* reach = &kReaches.front();
  for (const Reach& later : kReaches) {
    if (later.from_round <= round) reach = &later;
  }
  return *reach;
}

const Reach& reach_of(const Case& c) { return reach_of_round(c.seed / kCaseSeeds); }

Case reached_case(Draws& draws, Case c, const Reach& reach) {
  constexpr int kLargeCases = 10;  // percent
  if (reach.from_round == 0 || !draws.chance(kLargeCases)) return c;
  Shape& s = c.shape;
  switch (draws.below(5)) {
    case 0:
      few_heads(s);
      shorten(s, reach.tokens, 16);
      s.q_tokens = beyond(draws, &Reach::tokens, reach);
      s.kv_tokens = draws.chance(50) ? s.q_tokens : beyond(draws, &Reach::tokens, reach);
      c.tile_queries = std::max<std::int64_t>(c.tile_queries, 8);
      c.tile_keys = std::max<std::int64_t>(c.tile_keys, 8);
      break;
    case 1:
      few_heads(s);
      shorten(s, 20, reach.channels);
      s.head_dim = beyond(draws, &Reach::channels, reach);
      s.v_dim = draws.chance(50) ? s.head_dim : beyond(draws, &Reach::channels, reach);
      break;
    case 2:
      shorten(s, 16, 16);
      s.batch = 1;
      s.kv_heads = std::min<std::int64_t>(2, s.kv_heads);
      s.q_heads = s.kv_heads * beyond(draws, &Reach::group, reach);
      break;
    case 3:
      shorten(s, 12, 16);
      s.q_heads = s.kv_heads = std::min<std::int64_t>(2, s.kv_heads);
      s.batch = beyond(draws, &Reach::batch, reach);
      break;
    default:
      c.ranks = static_cast<int>(draws.between(kReaches.front().ranks + 1, reach.ranks));
  }
  return fitted(std::move(c));
}

}  // namespace ringlab::verify
