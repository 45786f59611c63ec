// Compiled for processors with AVX512_BF16, like bf16_dot_tile.cpp, and with intrinsics. The
// instructions of AMX are inline assembly: intrinsics take numbers of registers as literals only.
#include "optimized/cpu/bf16/bf16_dot_amx.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "optimized/cpu/bf16/bf16_dot_amx_products-inl.h"

namespace ringlab::cpu::bf16_dot {
namespace {

/// Tiles of bf16_dot_amx_tiles-inl.h in the AMX registers of this thread.
struct AmxTiles {
  template <int r>
  void load(const void* from, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(r) : "memory");
  }
  template <int r>
  void store(void* to, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(r) : "memory");
  }
  template <int r>
  void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(r));
  }
  template <int c, int a, int b>
  void dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
};

/// The operand of LDTILECFG: all eight tile registers are 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  TileShapes() {
    for (int r = 0; r < 8; ++r) {
      row_bytes[r] = 64;
      rows[r] = 16;
    }
  }
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

void begin() {
  const TileShapes shapes;
  asm volatile("ldtilecfg %0" : : "m"(shapes));
}
void end() { asm volatile("tilerelease"); }

bool has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;  // of leaf 7
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBf16) && (d & kTile);
}

/// Asks the system for the 8 KiB of tile registers, which a process has only after asking.
bool may_use_tiles() {
#ifdef __linux__
  constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

bool amx_available() {
  static const bool available = has_amx_bf16() && may_use_tiles();
  return available;
}

const Products kAmxProducts = products_in_tiles<AmxTiles>({.begin = begin, .end = end});

}  // namespace ringlab::cpu::bf16_dot
