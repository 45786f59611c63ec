// The random words behind dropout (reference/core/modifiers.h), one call at a time.
#pragma once

#include <array>
#include <cstdint>

namespace ringlab::cpu {

/// Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011): its multipliers, and the increments of its key
/// from round to round.
struct Philox {
  using Words = std::array<std::uint32_t, 4>;
  static constexpr int kRounds = 10;
  static constexpr std::uint32_t kMultipliers[2] = {0xd2511f53, 0xcd9e8d57};
  static constexpr std::uint32_t kIncrements[2] = {0x9e3779b9, 0xbb67ae85};
};

/// The part of the counter that some queries share.
struct PhiloxCall {
  std::uint64_t seed;
  std::uint32_t keys;  ///< global key / 4
  std::uint32_t head;
  std::uint32_t batch;
};

/// Four random words of a counter. philox-inl.h does the same for a vector of counters.
inline Philox::Words random_words(Philox::Words counter, std::uint64_t seed) {
  auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < Philox::kRounds; ++round) {
    const std::uint64_t first = std::uint64_t{Philox::kMultipliers[0]} * counter[0];
    const std::uint64_t second = std::uint64_t{Philox::kMultipliers[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ low,
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ high,
               static_cast<std::uint32_t>(first)};
    low += Philox::kIncrements[0];
    high += Philox::kIncrements[1];
  }
  return counter;
}

}  // namespace ringlab::cpu
