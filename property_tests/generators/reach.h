// The reach of random cases: it grows with the rounds, so that time buys larger and rarer cases.
#pragma once

#include <array>
#include <cstdint>

#include "property_tests/case.h"
#include "property_tests/generators/draws.h"

namespace ringlab::verify {

/// The greatest sizes of the cases from one round on. Sizes of the first round are random_case()'s;
/// later one case in ten is larger in one of them.
struct Reach {
  std::uint64_t from_round;  ///< counted from 0
  std::int64_t tokens, channels, group, batch;
  int ranks;
  std::int64_t tile_tokens;  ///< of law many_tiles
  std::int64_t row_tokens;   ///< of law every_row
  std::int64_t keys_before;  ///< of law far_positions
};
inline constexpr std::array<Reach, 4> kReaches = {
    {{0, 70, 256, 16, 6, 9, 290, 2250, std::int64_t{1} << 16},
     {1, 140, 320, 24, 9, 12, 418, 4300, std::int64_t{1} << 17},
     {3, 280, 512, 32, 16, 17, 546, 6350, std::int64_t{1} << 18},
     {9, 560, 1024, 64, 40, 33, 802, 8150, (std::int64_t{1} << 20) - 100}}};

const Reach& reach_of_round(std::uint64_t round);
/// The reach of the round that a case was drawn in, by its seed.
const Reach& reach_of(const Case& c);

/// The case as it is or, in one of ten, larger in one size and small in the others. Draws nothing
/// in the first round.
Case reached_case(Draws& draws, Case c, const Reach& reach);

}  // namespace ringlab::verify
