// The place of a matrix in shared memory for the tensor cores: addresses inside boxes, and the
// 64-bit matrix descriptor of wgmma (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory
// Layout").
//
// Kernels make descriptors here and so does the emulated GPU, which then reads matrices as the PTX
// ISA says a descriptor is read. Addresses are 32-bit addresses in the window of shared memory.
//
// A box of R rows and 64 channels of 16 bits, as load_box() leaves it. A unit of 16 bytes lies at
// its address with bits 4 … 6 exclusive-ored with bits 7 … 9: "swizzled by 128 bytes". Eight rows,
// 1024 bytes, are one period.
//
//   at byte   16-byte units, by place
//
//         0   [0][1][2][3][4][5][6][7]   row 0
//       128   [1][0][3][2][5][4][7][6]   row 1
//       256   [2][3][0][1][6][7][4][5]   row 2
//         …
//      1024   [0][1][2][3][4][5][6][7]   row 8
//         …
//     128 R   [0][1][2][3][4][5][6][7]   row 0 of channels 64 … 127: the next box
//
// In the words of the PTX ISA such a period is a tile of eight rows by 64 channels, and:
//
//   A or B with rows and channels in the roles of M (or N) and K: "K-major". From 8 rows to the
//   next 8 is the stride byte offset, 1024. 16 channels are 32 bytes, always inside one period, so
//   the leading byte offset is not used (1 by convention). Channels c … c + 15 begin at the box c /
//   64, 2 (c % 64) bytes on; the exclusive or is of address bits, so it follows by itself.
//
//   V as B with keys in the role of K and channels in that of N: "MN-major" (transposed). From 64
//   channels to the next 64 is the leading byte offset, one box: 128 R. From 8 keys to the next 8
//   is the stride byte offset, 1024.
#pragma once

#include <cstdint>

#include "reference/core/host_device.h"

namespace ringlab::cuda {

inline constexpr int kBoxChannels = 64;
inline constexpr std::uint32_t kBoxRowBytes = 128;
inline constexpr std::uint32_t kSwizzlePeriodBytes = 1024;  ///< also the alignment of boxes

/// The swizzled place of the byte at `address`.
RINGLAB_HD constexpr std::uint32_t swizzle_128(std::uint32_t address) {
  return address ^ ((address >> 7 & 7u) << 4);
}

/// The fields of a descriptor, in bytes. The matrix base offset is 0: operands begin where a period
/// begins, or inside the first row of one.
struct MatrixFields {
  std::uint32_t start;
  std::uint32_t leading;
  std::uint32_t stride;
};

/// Bits 0-13 start / 16, 16-29 leading / 16, 32-45 stride / 16, 62-63: 1, swizzled by 128 bytes.
RINGLAB_HD constexpr std::uint64_t matrix_descriptor(MatrixFields fields) {
  constexpr std::uint64_t kSwizzledBy128Bytes = std::uint64_t{1} << 62;
  const auto field = [](std::uint32_t bytes) { return std::uint64_t{(bytes & 0x3ffffu) >> 4}; };
  return field(fields.start) | field(fields.leading) << 16 | field(fields.stride) << 32 |
         kSwizzledBy128Bytes;
}

// Offsets are added to the descriptor of the operand's start, which is made once for all products:
// they are constants, and shared memory ends long before the 18 bits of an address do.

/// 16 channels from `channel` of rows in boxes of `box_rows` rows, of which the first is at
/// `start`.
RINGLAB_HD constexpr std::uint64_t rows_descriptor(std::uint32_t start, int box_rows, int channel) {
  const auto box = static_cast<std::uint32_t>(channel / kBoxChannels * box_rows) * kBoxRowBytes;
  const auto in_row = static_cast<std::uint32_t>(channel % kBoxChannels * 2);
  return matrix_descriptor({.start = start, .leading = 16, .stride = kSwizzlePeriodBytes}) +
         (box + in_row) / 16;
}

/// 16 rows from `key`, all channels from the first on, transposed.
RINGLAB_HD constexpr std::uint64_t columns_descriptor(std::uint32_t start, int box_rows, int key) {
  return matrix_descriptor({.start = start,
                            .leading = static_cast<std::uint32_t>(box_rows) * kBoxRowBytes,
                            .stride = kSwizzlePeriodBytes}) +
         static_cast<std::uint32_t>(key) * kBoxRowBytes / 16;
}

}  // namespace ringlab::cuda
