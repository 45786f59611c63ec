// The NaN that outputs hold before anybody writes them.
#pragma once

#include <bit>
#include <cstdint>

namespace ringlab {

/// A quiet NaN that arithmetic does not make. Its mark lies in the bits that f32, bf16 and f16 keep.
inline constexpr double kUnwritten = std::bit_cast<double>(std::uint64_t{0x7ffda00000000000});

/// True for kUnwritten, also when it was narrowed and widened again.
inline bool is_unwritten(double x) {
  return std::bit_cast<std::uint64_t>(x) >> 45 == std::bit_cast<std::uint64_t>(kUnwritten) >> 45;
}

}  // namespace ringlab
