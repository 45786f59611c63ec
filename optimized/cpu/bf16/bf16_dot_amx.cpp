// Compiled for processors with AVX512_BF16, like bf16_dot_tile.cpp, and with intrinsics. The
// instructions of AMX are written out: compilers want numbers of registers where they are read.
#include "optimized/cpu/bf16/bf16_dot_amx.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "optimized/cpu/bf16/bf16_dot_amx_tiles-inl.h"
#include "optimized/cpu/bf16/bf16_dot_vectors-inl.h"
#include "optimized/cpu/bf16/bf16_dot_weights-inl.h"

namespace ringlab::cpu::bf16_dot {
namespace {

/// The registers of this thread.
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

/// What LDTILECFG reads: all eight registers are 16 rows of 64 bytes.
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

/// The largest scores so far, lane by lane.
struct RunningTops {
  RunningTops() {
    for (__m512& top : of) top = _mm512_set1_ps(kNone);
  }
  [[gnu::always_inline]] void take_in(const Scoring& job, std::int64_t row) {
    const std::int64_t last = row + kSide < job.count ? row + kSide : job.count;
    for (; row < last; ++row) {
      for (int x = 0; x < kVectors; ++x) {
        of[x] = _mm512_max_ps(of[x], _mm512_load_ps(job.scores + row * kWidth + 16 * x));
      }
    }
  }
  void store(float* tops) const {
    for (int x = 0; x < kVectors; ++x) _mm512_store_ps(tops + 16 * x, of[x]);
  }
  __m512 of[kVectors];
};

void score_amx(const Scoring& job) {
  AmxTiles tiles;
  RunningTops tops;
  for (std::int64_t row = 0; row < job.count; row += kSide) {
    score_side(tiles, job, row);
    // Those before: these are on their way to memory.
    if (job.tops && row > 0) tops.take_in(job, row - kSide);
  }
  if (!job.tops) return;
  tops.take_in(job, (job.count - 1) / kSide * kSide);
  tops.store(job.tops);
}

/// In turn: matrices and vectors have units of their own.
bool score_and_weigh_amx(const Scoring& next, const Weighing& now) {
  AmxTiles tiles;
  RunningTops tops;
  WeighedLanes lanes[kVectors];
  for (int x = 0; x < kVectors; ++x) lanes[x] = WeighedLanes(now, x);
  for (std::int64_t row = 0; row < next.count || row < now.count; row += kSide) {
    if (row < next.count) score_side(tiles, next, row);
    const std::int64_t last = row + kSide < now.count ? row + kSide : now.count;
    for (WeighedLanes& some : lanes) some.weigh_rows(now, row, last);
    if (row < next.count) tops.take_in(next, row);
  }
  tops.store(next.tops);
  bool rescale = false;
  for (const WeighedLanes& some : lanes) rescale |= some.end(now);
  return rescale;
}
void add_weighted_amx(const Adding& job) {
  AmxTiles tiles;
  add_weighted_in_tiles(tiles, job);
}
void add_over_queries_amx(const Gathering& job) {
  AmxTiles tiles;
  add_over_queries_in_tiles(tiles, job);
}

/// Pairs of rows become columns: (panel of 16 channels, 16 pairs, channel, pair).
bool pack_values_amx(const Packing& job) {
  const __m512i magnitude = _mm512_set1_epi16(0x7fff);
  __m512i largest = _mm512_setzero_si512();
  for (std::int64_t c = 0; c < job.channels; c += kSide) {
    const __mmask32 all = first_words(job.channels - c) & 0xffffu;
    std::uint32_t* to = job.panels + c / kSide * job.panel_stride;
    for (std::int64_t row = 0; row < job.rows; row += kKeyStep, to += kSide * kSide) {
      __m512i pairs[kSide];
      for (int t = 0; t < kSide; ++t) {
        const std::int64_t even = row + 2 * t;
        const std::uint16_t* const at = job.values + even * job.channels + c;
        const __m512i low = _mm512_maskz_loadu_epi16(even < job.rows ? all : 0, at);
        const __m512i high =
            _mm512_maskz_loadu_epi16(even + 1 < job.rows ? all : 0, at + job.channels);
        const __m512i halves = _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1);
        largest = _mm512_max_epu16(largest, _mm512_and_si512(halves, magnitude));
        pairs[t] = in_turn(halves);
      }
      transpose(pairs);
      for (int i = 0; i < kSide; ++i) _mm512_store_si512(to + i * kSide, pairs[i]);
    }
  }
  return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(0x7f80)) == 0;
}

bool has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;  // of leaf 7
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBf16) && (d & kTile);
}

/// Registers of 8 KiB are given to a process that asks for them.
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

const Products kAmxProducts = {.score = score_amx,
                               .score_and_weigh = score_and_weigh_amx,
                               .add_weighted = add_weighted_amx,
                               .add_over_queries = add_over_queries_amx,
                               .pack_values = pack_values_amx,
                               .pairs = kSide,
                               .keys = kKeyStep,
                               .rows = kSide,
                               .panel = kSide,
                               .begin = begin,
                               .end = end};

}  // namespace ringlab::cpu::bf16_dot
