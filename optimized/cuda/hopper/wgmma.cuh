// wgmma.mma_async: the instruction for every N, with its operands listed.
//
// An accumulator is N / 2 registers, and inline assembly wants each by its number and by its name:
// the macros below write them in groups of eight. The registers come first, and other operands have
// the numbers N / 2 and up.
#pragma once

#include <cstdint>
#include <type_traits>

#include "optimized/cuda/device_types.h"
#include "optimized/cuda/hopper/descriptor.h"
#include "reference/core/small_float.h"

namespace ringlab::cuda {

RINGLAB_KERNEL_CODE void products_begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  __trap();
#endif
}
RINGLAB_KERNEL_CODE void products_commit() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  __trap();
#endif
}
template <int Pending>
RINGLAB_KERNEL_CODE void products_wait() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
#else
  __trap();
#endif
}
template <int Count>
RINGLAB_KERNEL_CODE void hold(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
/// Has a store of `value` that never happens: ptxas moves waits past arithmetic, but not past
/// stores. (A branch would do, but then ptxas serializes the products.)
RINGLAB_KERNEL_CODE void compute_before_waiting(float value) {
  asm volatile(
      "{\n"
      ".reg .pred never;\n"
      "setp.lt.f32 never, %0, 0f00000000;\n"
      "@never st.shared.f32 [%1], %0;\n"
      "}\n" ::"f"(value),
      "r"(0)
      : "memory");
}

namespace ptx {

// Numbers of registers, eight at a time, and of the first 8 n.
#define RINGLAB_NUMBERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define RINGLAB_NUMBERS_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define RINGLAB_NUMBERS_24 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define RINGLAB_NUMBERS_32 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define RINGLAB_NUMBERS_40 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define RINGLAB_NUMBERS_48 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define RINGLAB_NUMBERS_56 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define RINGLAB_NUMBERS_64 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define RINGLAB_NUMBERS_72 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define RINGLAB_NUMBERS_80 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define RINGLAB_NUMBERS_88 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define RINGLAB_NUMBERS_96 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define RINGLAB_NUMBERS_104 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define RINGLAB_NUMBERS_112 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define RINGLAB_NUMBERS_120 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define RINGLAB_NUMBERS_128 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define RINGLAB_UP_TO_8 RINGLAB_NUMBERS_8
#define RINGLAB_UP_TO_16 RINGLAB_UP_TO_8 RINGLAB_NUMBERS_16
#define RINGLAB_UP_TO_24 RINGLAB_UP_TO_16 RINGLAB_NUMBERS_24
#define RINGLAB_UP_TO_32 RINGLAB_UP_TO_24 RINGLAB_NUMBERS_32
#define RINGLAB_UP_TO_40 RINGLAB_UP_TO_32 RINGLAB_NUMBERS_40
#define RINGLAB_UP_TO_48 RINGLAB_UP_TO_40 RINGLAB_NUMBERS_48
#define RINGLAB_UP_TO_56 RINGLAB_UP_TO_48 RINGLAB_NUMBERS_56
#define RINGLAB_UP_TO_64 RINGLAB_UP_TO_56 RINGLAB_NUMBERS_64
#define RINGLAB_UP_TO_72 RINGLAB_UP_TO_64 RINGLAB_NUMBERS_72
#define RINGLAB_UP_TO_80 RINGLAB_UP_TO_72 RINGLAB_NUMBERS_80
#define RINGLAB_UP_TO_88 RINGLAB_UP_TO_80 RINGLAB_NUMBERS_88
#define RINGLAB_UP_TO_96 RINGLAB_UP_TO_88 RINGLAB_NUMBERS_96
#define RINGLAB_UP_TO_104 RINGLAB_UP_TO_96 RINGLAB_NUMBERS_104
#define RINGLAB_UP_TO_112 RINGLAB_UP_TO_104 RINGLAB_NUMBERS_112
#define RINGLAB_UP_TO_120 RINGLAB_UP_TO_112 RINGLAB_NUMBERS_120
#define RINGLAB_UP_TO_128 RINGLAB_UP_TO_120 RINGLAB_NUMBERS_128

// The registers themselves.
#define RINGLAB_EIGHT(i)                                                                      \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define RINGLAB_D_8 RINGLAB_EIGHT(0)
#define RINGLAB_D_16 RINGLAB_D_8, RINGLAB_EIGHT(8)
#define RINGLAB_D_24 RINGLAB_D_16, RINGLAB_EIGHT(16)
#define RINGLAB_D_32 RINGLAB_D_24, RINGLAB_EIGHT(24)
#define RINGLAB_D_40 RINGLAB_D_32, RINGLAB_EIGHT(32)
#define RINGLAB_D_48 RINGLAB_D_40, RINGLAB_EIGHT(40)
#define RINGLAB_D_56 RINGLAB_D_48, RINGLAB_EIGHT(48)
#define RINGLAB_D_64 RINGLAB_D_56, RINGLAB_EIGHT(56)
#define RINGLAB_D_72 RINGLAB_D_64, RINGLAB_EIGHT(64)
#define RINGLAB_D_80 RINGLAB_D_72, RINGLAB_EIGHT(72)
#define RINGLAB_D_88 RINGLAB_D_80, RINGLAB_EIGHT(80)
#define RINGLAB_D_96 RINGLAB_D_88, RINGLAB_EIGHT(88)
#define RINGLAB_D_104 RINGLAB_D_96, RINGLAB_EIGHT(96)
#define RINGLAB_D_112 RINGLAB_D_104, RINGLAB_EIGHT(104)
#define RINGLAB_D_120 RINGLAB_D_112, RINGLAB_EIGHT(112)
#define RINGLAB_D_128 RINGLAB_D_120, RINGLAB_EIGHT(120)

// Both operands in shared memory: COUNT registers, then the numbers of the two descriptors and of
// the flag that keeps what d held. TRANSPOSED: both are, or neither.
#define RINGLAB_WGMMA_BOTH_SHARED(SHAPE, TYPE, COUNT, A, B, KEEP, TRANSPOSED)                  \
  asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %" #KEEP                                  \
               ", 0; wgmma.mma_async.sync.aligned." SHAPE ".f32." TYPE "." TYPE                \
               " {" RINGLAB_UP_TO_##COUNT "}, %" #A ", %" #B ", keep, 1, 1, " TRANSPOSED "; }" \
               : RINGLAB_D_##COUNT                                                             \
               : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)))
#define RINGLAB_WGMMA_SHARED(SHAPE, TYPE, COUNT, A, B, KEEP) \
  RINGLAB_WGMMA_BOTH_SHARED(SHAPE, TYPE, COUNT, A, B, KEEP, "0, 0")
#define RINGLAB_WGMMA_COLUMNS(SHAPE, TYPE, COUNT, A, B, KEEP) \
  RINGLAB_WGMMA_BOTH_SHARED(SHAPE, TYPE, COUNT, A, B, KEEP, "1, 1")

// A in registers; B in shared memory, TRANSPOSED or not.
#define RINGLAB_WGMMA_REGISTERS(SHAPE, TYPE, COUNT, A0, A1, A2, A3, B, KEEP, TRANSPOSED)           \
  asm volatile(                                                                                    \
      "{ .reg .pred keep; setp.ne.b32 keep, %" #KEEP ", 0; wgmma.mma_async.sync.aligned." SHAPE    \
      ".f32." TYPE "." TYPE " {" RINGLAB_UP_TO_##COUNT "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3   \
                                                       "}, %" #B ", keep, 1, 1, " TRANSPOSED "; }" \
      : RINGLAB_D_##COUNT                                                                          \
      : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(b), "r"(static_cast<int>(accumulate)))
#define RINGLAB_WGMMA_BY_ROWS(SHAPE, TYPE, COUNT, A0, A1, A2, A3, B, KEEP) \
  RINGLAB_WGMMA_REGISTERS(SHAPE, TYPE, COUNT, A0, A1, A2, A3, B, KEEP, "0")
#define RINGLAB_WGMMA_WEIGHTS(SHAPE, TYPE, COUNT, A0, A1, A2, A3, B, KEEP) \
  RINGLAB_WGMMA_REGISTERS(SHAPE, TYPE, COUNT, A0, A1, A2, A3, B, KEEP, "1")

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define RINGLAB_WGMMA_CASE(FORM, N_VALUE, ...)                   \
  if constexpr (N == N_VALUE && std::is_same_v<Element, Half>) { \
    FORM("m64n" #N_VALUE "k16", "f16", __VA_ARGS__);             \
  } else if constexpr (N == N_VALUE) {                           \
    FORM("m64n" #N_VALUE "k16", "bf16", __VA_ARGS__);            \
  }
#else
#define RINGLAB_WGMMA_CASE(FORM, N_VALUE, ...) \
  if constexpr (N == N_VALUE) __trap();
#endif

template <class Element, int N>
RINGLAB_KERNEL_CODE void wgmma(float (&d)[N / 2], std::uint64_t a, std::uint64_t b,
                               bool accumulate) {
  static_assert(std::is_same_v<Element, Half> || std::is_same_v<Element, BFloat16>);
  static_assert(N % 16 == 0 && N >= 16 && N <= 256);
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 16, 8, 8, 9, 10)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 32, 16, 16, 17, 18)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 48, 24, 24, 25, 26)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 64, 32, 32, 33, 34)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 80, 40, 40, 41, 42)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 96, 48, 48, 49, 50)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 112, 56, 56, 57, 58)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 128, 64, 64, 65, 66)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 144, 72, 72, 73, 74)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 160, 80, 80, 81, 82)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 176, 88, 88, 89, 90)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 192, 96, 96, 97, 98)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 208, 104, 104, 105, 106)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 224, 112, 112, 113, 114)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 240, 120, 120, 121, 122)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_SHARED, 256, 128, 128, 129, 130)
}

template <class Element, int N>
RINGLAB_KERNEL_CODE void wgmma(float (&d)[N / 2], const std::uint32_t (&p)[4], std::uint64_t b) {
  static_assert(std::is_same_v<Element, Half> || std::is_same_v<Element, BFloat16>);
  static_assert(N % 64 == 0 && N >= 64 && N <= 256);
  [[maybe_unused]] constexpr bool accumulate = true;
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_WEIGHTS, 64, 32, 32, 33, 34, 35, 36, 37)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_WEIGHTS, 128, 64, 64, 65, 66, 67, 68, 69)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_WEIGHTS, 192, 96, 96, 97, 98, 99, 100, 101)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_WEIGHTS, 256, 128, 128, 129, 130, 131, 132, 133)
}

template <class Element, int N>
RINGLAB_KERNEL_CODE void wgmma_by_rows(float (&d)[N / 2], const std::uint32_t (&p)[4],
                                       std::uint64_t b, bool accumulate) {
  static_assert(std::is_same_v<Element, Half> || std::is_same_v<Element, BFloat16>);
  static_assert(N % 64 == 0 && N >= 64 && N <= 256);
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_BY_ROWS, 64, 32, 32, 33, 34, 35, 36, 37)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_BY_ROWS, 128, 64, 64, 65, 66, 67, 68, 69)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_BY_ROWS, 192, 96, 96, 97, 98, 99, 100, 101)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_BY_ROWS, 256, 128, 128, 129, 130, 131, 132, 133)
}

template <class Element, int N>
RINGLAB_KERNEL_CODE void wgmma_columns(float (&d)[N / 2], std::uint64_t a, std::uint64_t b,
                                       bool accumulate) {
  static_assert(std::is_same_v<Element, Half> || std::is_same_v<Element, BFloat16>);
  static_assert(N % 64 == 0 && N >= 64 && N <= 256);
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_COLUMNS, 64, 32, 32, 33, 34)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_COLUMNS, 128, 64, 64, 65, 66)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_COLUMNS, 192, 96, 96, 97, 98)
  RINGLAB_WGMMA_CASE(RINGLAB_WGMMA_COLUMNS, 256, 128, 128, 129, 130)
}

#undef RINGLAB_WGMMA_CASE
#undef RINGLAB_WGMMA_REGISTERS
#undef RINGLAB_WGMMA_BY_ROWS
#undef RINGLAB_WGMMA_WEIGHTS
#undef RINGLAB_WGMMA_COLUMNS
#undef RINGLAB_WGMMA_SHARED
#undef RINGLAB_WGMMA_BOTH_SHARED
#undef RINGLAB_EIGHT

}  // namespace ptx
}  // namespace ringlab::cuda
