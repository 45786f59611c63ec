// The types of the values that instructions of device_code.h take.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define RINGLAB_KERNEL_CODE __device__ __forceinline__
#define RINGLAB_UNROLL _Pragma("unroll")
#define RINGLAB_UNROLL_SOME _Pragma("unroll 2")
#define RINGLAB_KEEP_LOOP _Pragma("unroll 1")
#else
#define RINGLAB_KERNEL_CODE inline
#define RINGLAB_UNROLL
#define RINGLAB_UNROLL_SOME
#define RINGLAB_KEEP_LOOP
#endif

namespace ringlab::cuda {

/// A barrier in shared memory (mbarrier). Only the machine knows what its bits mean.
struct alignas(8) Barrier {
  std::uint64_t state;
};

/// The name of a wait in a kernel: up to 8 letters in one number, for reports of lost waits.
class WaitName {
 public:
  template <int Size>
  consteval WaitName(const char (&text)[Size]) {
    static_assert(Size <= 9, "8 letters and a zero");
    for (int i = 0; text[i] != 0; ++i) {
      letters_ |= std::uint64_t{static_cast<unsigned char>(text[i])} << 8 * i;
    }
  }
  constexpr std::uint64_t letters() const { return letters_; }

 private:
  std::uint64_t letters_ = 0;
};

/// Describes a dense tensor (batch · heads, rows, channels) of 16-bit elements or f32, and boxes of
/// `box_rows` rows by 64 channels, or 32 of f32 (128 bytes). A box lies in shared memory row after
/// row, 128 bytes each, swizzled by 128 bytes; aligned to 1024 bytes. make_tensor_map() makes it on
/// the host.
struct alignas(128) TensorMap {
  std::uint64_t opaque[16];  ///< a CUtensorMap
};

/// The place of an operand: boxes of 64 channels in the layout of load_box(), one after another,
/// `box_rows` rows each (a multiple of 8). Points at the first of the operand's rows (a multiple of
/// 8) in the first box.
struct Operand {
  const std::byte* shared;
  int box_rows;
};

}  // namespace ringlab::cuda
