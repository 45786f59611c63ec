// SHA-256 (FIPS 180-4): a name for content. It shows changes, not who made them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringlab::verify {

class Sha256 {
 public:
  void add(std::string_view bytes);
  /// Of all that was added, as 64 hexadecimal digits; add() may not follow.
  std::string finish();

 private:
  void take_block();

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

std::string sha256(std::string_view bytes);

}  // namespace ringlab::verify
