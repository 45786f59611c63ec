#include "optimized/bench/cpu/peak_loop.h"

#include <algorithm>

#include "optimized/cpu/bf16/bf16_dot_amx.h"
#include "optimized/cpu/vectors.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

// More than latency times units, so that all units are busy: bf16 dot products take up to 6 cycles.
constexpr int kChains = 14;

/// The factors: ordinary numbers, since zeros run cooler and faster. As pairs of bf16 and as
/// doubles these bits are ordinary numbers, too.
alignas(64) constexpr std::uint32_t kFactors[16] = {
    0x3e4c3d11, 0xbe1b3ea2, 0x3dc5be3d, 0x3f083c9b, 0xbd93be77, 0x3e813e2f, 0xbecf3d54, 0x3d3dbe05,
    0x3ea83f01, 0xbe5d3e98, 0x3d7f3dba, 0xbf113c3f, 0x3e2a3e6d, 0xbd553ed1, 0x3ef1bdc7, 0x3d12be4a};

#if defined(__x86_64__)
// One instruction into one of 14 registers, and a loop of them; %1 has the factors.
#define RINGLAB_STEP(op, v, n) op " %%" v "14, %%" v "15, %%" v #n "\n"
#define RINGLAB_CLEAR(v, n) "vxorps %%" v #n ", %%" v #n ", %%" v #n "\n"
#define RINGLAB_LOOP(op, v) \
  asm volatile("vmovups (%1), %%" v "14\nvmovups (%1), %%" v "15\n" RINGLAB_CLEAR("ymm", 0)        \
                   RINGLAB_CLEAR("ymm", 1) RINGLAB_CLEAR("ymm", 2) RINGLAB_CLEAR("ymm", 3)         \
                       RINGLAB_CLEAR("ymm", 4) RINGLAB_CLEAR("ymm", 5) RINGLAB_CLEAR("ymm", 6)     \
                           RINGLAB_CLEAR("ymm", 7) RINGLAB_CLEAR("ymm", 8) RINGLAB_CLEAR("ymm", 9) \
                               RINGLAB_CLEAR("ymm", 10) RINGLAB_CLEAR("ymm", 11)                   \
                                   RINGLAB_CLEAR("ymm", 12)                                        \
                                       RINGLAB_CLEAR("ymm", 13)                                    \
               "1:\n" RINGLAB_STEP(op, v, 0) RINGLAB_STEP(op, v, 1) RINGLAB_STEP(op, v, 2)         \
                   RINGLAB_STEP(op, v, 3) RINGLAB_STEP(op, v, 4) RINGLAB_STEP(op, v, 5)            \
                       RINGLAB_STEP(op, v, 6) RINGLAB_STEP(op, v, 7) RINGLAB_STEP(op, v, 8)        \
                           RINGLAB_STEP(op, v, 9) RINGLAB_STEP(op, v, 10) RINGLAB_STEP(op, v, 11)  \
                               RINGLAB_STEP(op, v, 12) RINGLAB_STEP(op, v, 13)                     \
               "dec %0\n"                                                                          \
               "jnz 1b\n"                                                                          \
               : "+r"(rounds)                                                                      \
               : "r"(kFactors)                                                                     \
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",   \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory")

__attribute__((target("avx512f"))) void f32_512(std::int64_t rounds) {
  RINGLAB_LOOP("vfmadd231ps", "zmm");
}
__attribute__((target("avx512f"))) void f64_512(std::int64_t rounds) {
  RINGLAB_LOOP("vfmadd231pd", "zmm");
}
__attribute__((target("avx512f"))) void bf16_512(std::int64_t rounds) {
  RINGLAB_LOOP("vdpbf16ps", "zmm");
}
__attribute__((target("avx2,fma"))) void f32_256(std::int64_t rounds) {
  RINGLAB_LOOP("vfmadd231ps", "ymm");
}
__attribute__((target("avx2,fma"))) void f64_256(std::int64_t rounds) {
  RINGLAB_LOOP("vfmadd231pd", "ymm");
}
void bf16_tiles(std::int64_t rounds) {
  const cpu::bf16_dot::Multiplying here(cpu::bf16_dot::kAmxProducts);
  asm volatile(
      "tileloadd (%1,%2,1), %%tmm6\ntileloadd (%1,%2,1), %%tmm7\n"  // all rows are the same
      "tilezero %%tmm0\ntilezero %%tmm1\ntilezero %%tmm2\ntilezero %%tmm3\n"
      "1:\n"
      "tdpbf16ps %%tmm7, %%tmm6, %%tmm0\ntdpbf16ps %%tmm7, %%tmm6, %%tmm1\n"
      "tdpbf16ps %%tmm7, %%tmm6, %%tmm2\ntdpbf16ps %%tmm7, %%tmm6, %%tmm3\n"
      "dec %0\n"
      "jnz 1b\n"
      : "+r"(rounds)
      : "r"(kFactors), "r"(std::int64_t{0})
      : "cc", "memory");
}
#undef RINGLAB_LOOP
#undef RINGLAB_CLEAR
#undef RINGLAB_STEP

bool has_bf16_dot() { return __builtin_cpu_supports("avx512bf16"); }
#else
void f32_512(std::int64_t) {}
void f64_512(std::int64_t) {}
void bf16_512(std::int64_t) {}
void bf16_tiles(std::int64_t) {}
void f32_256(std::int64_t) {}
void f64_256(std::int64_t) {}
bool has_bf16_dot() { return false; }
#endif

bool uses_512_bits() { return cpu::vectors_in_use().starts_with("avx512"); }
bool uses_256_bits() { return cpu::vectors_in_use() == "avx2"; }

double flops_per_round(PeakOperation operation, bool wide) {
  if (operation == PeakOperation::bf16_matrix) return 4 * (2.0 * 16 * 16 * 32);
  const int lanes = (wide ? 16 : 8) / (operation == PeakOperation::f64_fma ? 2 : 1);
  return (operation == PeakOperation::bf16_dot ? 4 : 2) * lanes * kChains;
}

void run_rounds(PeakOperation operation, bool wide, std::int64_t rounds) {
  switch (operation) {
    case PeakOperation::f32_fma:
      return wide ? f32_512(rounds) : f32_256(rounds);
    case PeakOperation::f64_fma:
      return wide ? f64_512(rounds) : f64_256(rounds);
    case PeakOperation::bf16_dot:
      return bf16_512(rounds);
    case PeakOperation::bf16_matrix:
      return bf16_tiles(rounds);
  }
}

}  // namespace

PeakOperation operation_for_bf16() {
  if (PeakLoop::missing(PeakOperation::bf16_matrix).empty()) return PeakOperation::bf16_matrix;
  const bool dots = cpu::bf16_products_in_use() != nullptr;
  return dots ? PeakOperation::bf16_dot : PeakOperation::f32_fma;
}

std::string name_of(PeakOperation operation) {
  switch (operation) {
    case PeakOperation::f32_fma:
      return "f32 multiply-add";
    case PeakOperation::f64_fma:
      return "f64 multiply-add";
    case PeakOperation::bf16_dot:
      return "bf16 dot product";
    case PeakOperation::bf16_matrix:
      return "bf16 matrix product";
  }
  return "";
}

std::string PeakLoop::missing(PeakOperation operation) {
  if (operation == PeakOperation::bf16_matrix) {
    if (cpu::bf16_products_in_use() == &cpu::bf16_dot::kAmxProducts) return "";
    return "no bf16 matrix product here: it takes AMX; vectors: " + cpu::vectors_in_use();
  }
  if (operation == PeakOperation::bf16_dot) {
    if (has_bf16_dot() && uses_512_bits()) return "";
    return "no bf16 dot product here: it takes AVX512_BF16; vectors: " + cpu::vectors_in_use();
  }
  if (uses_512_bits() || uses_256_bits()) return "";
  return "no peak is known here: it takes AVX2 and FMA; vectors: " + cpu::vectors_in_use();
}

PeakLoop::PeakLoop(PeakOperation operation) : operation_(operation), wide_(uses_512_bits()) {
  const std::string reason = missing(operation);
  if (reason.empty()) return;
  throw_environment_error({.where = "ringlab_goals cpu",
                           .expected = "a processor whose peak can be measured",
                           .actual = reason,
                           .hint = "Unset RINGLAB_VECTORS if it is set"});
}

double PeakLoop::run(double flops) const {
  const double per_round = flops_per_round(operation_, wide_);
  const auto rounds = std::max<std::int64_t>(1, static_cast<std::int64_t>(flops / per_round) + 1);
  run_rounds(operation_, wide_, rounds);
  return static_cast<double>(rounds) * per_round;
}

double PeakLoop::flops_per_s() const {
  constexpr double kFlops = 1e9;  // 10 ms at 100 Gflop/s
  const double flops = run(kFlops);
  const std::vector<Timing> timings =
      time_in_turn({on_one_thread("peak", [&] { run(flops); })}, {.rounds = 5});
  return flops / timings[0].seconds.p10;
}

std::vector<PeakShare> shares_of_peak(PeakOperation operation, const std::vector<Counted>& all,
                                      const TimingOptions& timing) {
  const PeakLoop peak(operation);
  const double peak_flops = peak.run(all.front().flops / 2);
  std::vector<Contender> contenders = {on_one_thread("peak", [&] { peak.run(peak_flops); })};
  for (const Counted& one : all) contenders.push_back(on_one_thread(one.id, one.work));
  const std::vector<Timing> timings = time_in_turn(contenders, timing);
  std::vector<PeakShare> shares;
  for (std::size_t i = 0; i < all.size(); ++i) {
    shares.push_back({.share = inverse(timings[i + 1].ratio, all[i].flops / peak_flops),
                      .gflops_per_s = inverse(timings[i + 1].seconds, all[i].flops * 1e-9),
                      .peak_gflops_per_s = inverse(timings[0].seconds, peak_flops * 1e-9)});
  }
  return shares;
}

}  // namespace ringlab::bench
