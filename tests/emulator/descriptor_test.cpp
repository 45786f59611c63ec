#include "optimized/cuda/hopper/descriptor.h"

#include <gtest/gtest.h>

#include "tests/emulator/machine/fault.h"
#include "tests/emulator/machine/matrix_read.h"

namespace ringlab::cuda {
namespace {

TEST(descriptor, fields_lie_where_the_ptx_isa_puts_them) {
  const std::uint64_t bits =
      matrix_descriptor({.start = 0x12340, .leading = 0x4000, .stride = 1024});
  EXPECT_EQ(bits & 0x3fff, 0x1234u);
  EXPECT_EQ(bits >> 16 & 0x3fff, 0x400u);
  EXPECT_EQ(bits >> 32 & 0x3fff, 64u);
  EXPECT_EQ(bits >> 62, 1u);
  EXPECT_EQ(bits & ~(0x3fffull | 0x3fffull << 16 | 0x3fffull << 32 | 1ull << 62), 0u);
}

// What Triton 3.6.0 emits for sm_90a for products of bf16 matrices whose boxes lie at 0, read off its
// PTX: boxes of 64 and of 128 rows, K-major and MN-major. It leaves the leading offset 0 where it is
// not used.
TEST(descriptor, is_what_another_compiler_makes_of_the_same_boxes) {
  constexpr std::uint64_t kNotUsed = ~(0x3fffull << 16);
  struct Box {
    int rows, first;
    std::uint64_t bits;
  };
  for (const Box box : {Box{64, 0, 0x4000004000000000}, Box{64, 16, 0x4000004000000002},
                        Box{64, 48, 0x4000004000000006}, Box{64, 64, 0x4000004000000200},
                        Box{64, 112, 0x4000004000000206}, Box{128, 32, 0x4000004000000004},
                        Box{128, 64, 0x4000004000000400}, Box{128, 96, 0x4000004000000404}}) {
    EXPECT_EQ(rows_descriptor(0, box.rows, box.first) & kNotUsed, box.bits);
  }
  for (const Box box : {Box{64, 0, 0x4000004002000000}, Box{64, 16, 0x4000004002000080},
                        Box{64, 48, 0x4000004002000180}, Box{128, 0, 0x4000004004000000},
                        Box{128, 64, 0x4000004004000200}, Box{128, 112, 0x4000004004000380}}) {
    EXPECT_EQ(columns_descriptor(0, box.rows, box.first), box.bits);
  }
}

TEST(descriptor, channels_advance_inside_a_row_and_then_to_the_next_box) {
  const auto start = [](int channel) {
    return static_cast<std::uint32_t>(rows_descriptor(2048, 96, channel) & 0x3fff) * 16;
  };
  EXPECT_EQ(start(0), 2048u);
  EXPECT_EQ(start(16), 2048u + 32);
  EXPECT_EQ(start(48), 2048u + 96);
  EXPECT_EQ(start(64), 2048u + 96 * 128);
  EXPECT_EQ(start(80), 2048u + 96 * 128 + 32);
}

TEST(descriptor, swizzling_is_its_own_inverse_and_stays_in_a_row) {
  for (std::uint32_t address = 0; address < 4096; ++address) {
    EXPECT_EQ(swizzle_128(swizzle_128(address)), address);
    EXPECT_EQ(swizzle_128(address) / 128, address / 128);
  }
}

TEST(descriptor, what_tensor_cores_would_not_read_is_a_fault) {
  emulator::SharedWindow shared(4096);
  shared.fence();
  float values[16 * 64];
  const auto read = [&](std::uint64_t descriptor) {
    emulator::read_rows(shared, DType::bf16, descriptor, 8, values);
  };
  EXPECT_NO_THROW(read(rows_descriptor(1024, 8, 0)));
  EXPECT_THROW(read(rows_descriptor(1024 + 128, 8, 0)), emulator::KernelFault);   // inside a period
  EXPECT_THROW(read(rows_descriptor(1024 + 4096, 8, 0)), emulator::KernelFault);  // outside
  EXPECT_THROW(read(rows_descriptor(0, 8, 0)), emulator::KernelFault);
  EXPECT_THROW(read(rows_descriptor(1024, 8, 0) & ~(1ull << 62)), emulator::KernelFault);
  EXPECT_THROW(read(rows_descriptor(1024, 8, 0) | 1ull << 50), emulator::KernelFault);
}

}  // namespace
}  // namespace ringlab::cuda
