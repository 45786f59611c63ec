// Reports of kernels that are compiled for tests (RINGLAB_BOUNDED_WAITS): which wait they gave up.
#pragma once

#include <cstdint>
#include <string>

namespace ringlab::cuda {

/// The address of a LostWait, which a kernel writes before it traps: the letters of its WaitName,
/// and 2^32 times the block plus the thread. Host memory, at an address that need not be passed on.
inline constexpr std::uint64_t kLostWaitAddress = 0x51'0000'0000;

struct LostWait {
  std::uint64_t letters = 0;  ///< 0: none was
  std::uint64_t place = 0;
};

/// The text of a WaitName.
inline std::string name_of_wait(std::uint64_t letters) {
  std::string text;
  for (; letters != 0; letters >>= 8) text += static_cast<char>(letters & 0xff);
  return text;
}

/// Empty for none.
inline std::string text_of(const LostWait& lost) {
  if (lost.letters == 0) return "";
  return "the wait for \"" + name_of_wait(lost.letters) + "\" of block " +
         std::to_string(lost.place >> 32) + ", thread " + std::to_string(lost.place & 0xffffffffu) +
         " never ended";
}

}  // namespace ringlab::cuda
