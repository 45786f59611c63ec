#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "optimized/bench/cpu/roofline.h"
#include "optimized/bench/measure/timing.h"
#include "optimized/cpu/parallel.h"
#include "optimized/cpu/vectors.h"

namespace ringlab::bench {
namespace {

#if defined(__x86_64__)
// Eight loads a step; %0 is the address, %1 the number of steps.
#define RINGLAB_LOAD(v, n, bytes) "vmovups " #n "*" #bytes "(%0), %%" v #n "\n"
#define RINGLAB_READ(v, bytes)                                                                   \
  asm volatile("1:\n" RINGLAB_LOAD(v, 0, bytes) RINGLAB_LOAD(v, 1, bytes)                        \
                   RINGLAB_LOAD(v, 2, bytes) RINGLAB_LOAD(v, 3, bytes) RINGLAB_LOAD(v, 4, bytes) \
                       RINGLAB_LOAD(v, 5, bytes) RINGLAB_LOAD(v, 6, bytes)                       \
                           RINGLAB_LOAD(v, 7, bytes) "add $8*" #bytes                            \
                                                     ", %0\n"                                    \
                                                     "dec %1\n"                                  \
                                                     "jnz 1b\n"                                  \
               : "+r"(from), "+r"(steps)                                                         \
               :                                                                                 \
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "cc", "memory")

__attribute__((target("avx512f"))) void read_512(const char* from, std::int64_t steps) {
  RINGLAB_READ("zmm", 64);
}
__attribute__((target("avx2"))) void read_256(const char* from, std::int64_t steps) {
  RINGLAB_READ("ymm", 32);
}
#undef RINGLAB_READ
#undef RINGLAB_LOAD
#else
void read_512(const char*, std::int64_t) {}
void read_256(const char*, std::int64_t) {}
#endif

/// Reads words into two sums, so that one addition need not wait for the other.
void read_words(const char* from, std::int64_t bytes) {
  std::uint64_t sums[2] = {};
  for (std::int64_t i = 0; i < bytes; i += 16) {
    std::uint64_t words[2];
    std::memcpy(words, from + i, 16);
    sums[0] += words[0];
    sums[1] += words[1];
  }
  asm volatile("" : : "r"(sums[0]), "r"(sums[1]));
}

void read_bytes(const char* from, std::int64_t bytes) {
  const std::string vectors = cpu::vectors_in_use();
  if (vectors.starts_with("avx512")) return read_512(from, bytes / 512);
  if (vectors == "avx2") return read_256(from, bytes / 256);
  read_words(from, bytes);
}

}  // namespace

ReadBuffer::ReadBuffer(std::int64_t bytes)
    : blocks_(std::max<std::int64_t>(1, bytes / kBlock)),
      memory_(static_cast<char*>(std::aligned_alloc(static_cast<std::size_t>(kBlock),
                                                    static_cast<std::size_t>(this->bytes())))) {
  if (!memory_) throw std::bad_alloc();
  // Touches every page, so that reads go to memory and not to one page of zeros.
  std::memset(memory_.get(), 1, static_cast<std::size_t>(this->bytes()));
}

void ReadBuffer::read(int threads) const {
  const std::int64_t parts = std::min<std::int64_t>(threads, blocks_);
  const std::int64_t each = (blocks_ + parts - 1) / parts;
  cpu::share_out(parts, threads, [&] {
    return [&](std::int64_t part) {
      const std::int64_t first = part * each, last = std::min(blocks_, first + each);
      if (first < last) read_bytes(memory_.get() + first * kBlock, (last - first) * kBlock);
    };
  });
}

Bandwidth measure_reading(const std::string& where, std::int64_t buffer_bytes) {
  constexpr std::int64_t kLeastBytes = std::int64_t{1} << 27;  // several ms
  const ReadBuffer buffer(buffer_bytes);
  const std::int64_t times = std::max<std::int64_t>(1, kLeastBytes / buffer.bytes());
  const auto read = [&] {
    for (std::int64_t i = 0; i < times; ++i) buffer.read(1);
  };
  const Timing timing = time_in_turn({on_one_thread(where, read)}, {.rounds = 5}).front();
  return {where, buffer.bytes(), static_cast<double>(times * buffer.bytes()) / timing.seconds.p10};
}

std::vector<Bandwidth> measure_bandwidths() {
  const std::int64_t l1 = ::sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  const std::int64_t l3 = std::max<std::int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
  std::vector<Bandwidth> measured;
  if (l1 > 0) measured.push_back(measure_reading("L1 cache", l1 / 2));
  if (l2 > 0) measured.push_back(measure_reading("L2 cache", l2 / 2));
  constexpr std::int64_t kLeast = std::int64_t{64} << 20, kMost = std::int64_t{1} << 30;
  measured.push_back(measure_reading("memory", std::clamp(4 * l3, kLeast, kMost)));
  return measured;
}

}  // namespace ringlab::bench
