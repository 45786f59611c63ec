// What any text does as the token of a case.
#pragma once

#include <string>

#include "property_tests/case.h"
#include "tests/fuzz/laws.h"

namespace ringlab::fuzz {

/// Whoever replays a token allocates at most so much, and visits at most so many pairs.
inline void require_small(const verify::Case& c) {
  constexpr std::int64_t kMost = 1 << 26;
  const Shape& s = c.shape;
  for (const Extents& extents : {s.q(), s.k(), s.v(), s.out()}) {
    require(checked_size(extents) <= kMost);
  }
  require(s.q_tokens * s.kv_tokens <= kMost);
  require(c.ranks <= 1024 && c.slots <= 1024 && c.tile_queries <= 1024 && c.tile_keys <= 1024);
}

/// A usage error, or a case that its own token describes and that fits.
inline bool case_token_laws(const Bytes& bytes) {
  verify::Case c;
  const std::string token = text_of_bytes(bytes);
  if (!accepts(ErrorKind::usage, [&] { c = verify::from_token(token); })) return false;
  require_small(c);
  require(verify::from_token(verify::to_token(c)) == c);
  require(verify::describe(c).size() < 1000 + 2 * token.size());
  check_problem(verify::make_problem(c));
  verify::make_options(c);
  const verify::Case fitted = verify::fitted(c);
  require(verify::fitted(fitted) == fitted);
  return true;
}

}  // namespace ringlab::fuzz
