#include "cli/fma_peak.h"

#include <algorithm>

#include "optimized/cpu/vectors.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

constexpr int kChains = 12;  // more than latency times units, so that all units are busy

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void multiply_512(std::int64_t rounds) {
  asm volatile(
      "1:\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm0\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm1\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm2\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm3\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm4\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm5\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm6\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm7\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm8\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm9\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm10\n"
      "vfmadd231ps %%zmm14, %%zmm15, %%zmm11\n"
      "dec %0\n"
      "jnz 1b\n"
      : "+r"(rounds)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm14", "xmm15", "cc");
}

__attribute__((target("avx2,fma"))) void multiply_256(std::int64_t rounds) {
  asm volatile(
      "1:\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm0\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm1\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm2\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm3\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm4\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm5\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm6\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm7\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm8\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm9\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm10\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm11\n"
      "dec %0\n"
      "jnz 1b\n"
      : "+r"(rounds)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm14", "xmm15", "cc");
}
#else
void multiply_512(std::int64_t) {}
void multiply_256(std::int64_t) {}
#endif

}  // namespace

FmaPeak::FmaPeak() : wide_(cpu::vectors_in_use() == "avx512") {
  if (wide_ || cpu::vectors_in_use() == "avx2") return;
  throw_environment_error({.where = "bench cpu",
                           .expected = "a processor with AVX2 and FMA to measure the peak of",
                           .actual = "vectors: " + cpu::vectors_in_use(),
                           .hint = "Unset RINGLAB_VECTORS if it is set"});
}

double FmaPeak::run(double flops) const {
  const double per_round = 2.0 * kChains * (wide_ ? 16 : 8);
  const auto rounds = std::max<std::int64_t>(1, static_cast<std::int64_t>(flops / per_round));
  if (wide_) {
    multiply_512(rounds);
  } else {
    multiply_256(rounds);
  }
  return static_cast<double>(rounds) * per_round;
}

}  // namespace ringlab::cli
