// What a warp does together, against what the PTX ISA says of each lane.
#include "tests/emulator/machine/warp.h"

#include "reference/core/dtype.h"
#include "tests/emulator/kernels.h"
#include "tests/emulator/matrices.h"

namespace ringlab::cuda::emulator {
namespace {

TEST(warp, shuffles_give_the_value_of_the_lane_asked_for) {
  expect_no_fault({.threads = 64}, [] {
    const int lane = thread_index() % 32;
    const int warp = thread_index() / 32;
    for (int mask = 0; mask < 32; ++mask) {
      EXPECT_EQ(shuffle_xor(static_cast<float>(100 * warp + lane), mask),
                100 * warp + (lane ^ mask));
    }
    EXPECT_EQ(shuffle(static_cast<std::uint32_t>(lane), 7), 7u);
    EXPECT_EQ(shuffle(static_cast<std::uint32_t>(lane), (lane + 5) % 32), (lane + 5) % 32);
  });
}

TEST(warp, loaded_matrices_lie_in_lanes_as_fragments) {
  expect_no_fault({.threads = 32, .shared_bytes = 512}, [] {
    const int lane = thread_index();
    auto* numbers = reinterpret_cast<std::uint16_t*>(shared_memory());
    for (int i = lane; i < 256; i += 32) numbers[i] = static_cast<std::uint16_t>(i);
    sync_block();
    // Matrix m is eight rows from 64 m; its element (r, c) is 64 m + 8 r + c.
    std::uint32_t fragments[4];
    load_matrices(fragments, numbers + 8 * lane);
    std::uint32_t transposed[4];
    load_matrices_transposed(transposed, numbers + 8 * lane);
    for (int m = 0; m < 4; ++m) {
      const int g = lane / 4;
      const int t = 2 * (lane % 4);
      const auto pair = [m](int r0, int c0, int r1, int c1) {
        return static_cast<std::uint32_t>((64 * m + 8 * r0 + c0) | (64 * m + 8 * r1 + c1) << 16);
      };
      EXPECT_EQ(fragments[m], pair(g, t, g, t + 1));
      EXPECT_EQ(transposed[m], pair(t, g, t + 1, g));
    }
  });
}

template <class Element>
class warp_products : public testing::Test {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(warp_products, Elements);

// A and B come by load_matrices from row-major (16, 16) and, as K does, from (8, 16).
TYPED_TEST(warp_products, multiply_add_is_a_matrix_product) {
  using Element = TypeParam;
  const auto a = integers<Element>(16, 16, 1);
  const auto b = integers<Element>(8, 16, 2);
  expect_no_fault({.threads = 64, .shared_bytes = 1024}, [&] {
    const int lane = thread_index() % 32;
    auto* shared = reinterpret_cast<Element*>(shared_memory());
    if (thread_index() == 0) {
      std::copy(a.values.begin(), a.values.end(), shared);
      std::copy(b.values.begin(), b.values.end(), shared + 256);
    }
    sync_block();
    std::uint32_t left[4];
    load_matrices(left, shared + (lane % 16) * 16 + lane / 16 * 8);
    std::uint32_t right[4];
    load_matrices(right, shared + 256 + (lane % 8) * 16 + lane / 8 % 2 * 8);
    float d[4] = {1, 2, 3, 4};
    multiply_add<Element>(d, left, {right[0], right[1]});
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2);
      const int column = 2 * (lane % 4) + i % 2;
      double expected = 1 + i;
      for (int k = 0; k < 16; ++k) expected += a.at(row, k) * b.at(column, k);
      EXPECT_EQ(d[i], expected);
    }
  });
}

TEST(warp, one_lane_that_is_elsewhere_is_a_fault) {
  expect_fault(
      {.threads = 32, .shared_bytes = 512},
      [] {
        std::uint32_t fragments[4];
        if (thread_index() == 5) {
          shuffle_xor(1, 1);
        } else {
          load_matrices(fragments, shared_memory());
        }
      },
      "lanes of a warp diverge");
  expect_fault(
      {.threads = 32},
      [] {
        if (thread_index() != 5) shuffle_xor(1, 1);
      },
      "shuffle_xor()");
  expect_fault(
      {.threads = 32},
      [] {
        if (thread_index() != 5) shuffle_xor(1, 1);
        sync_block();
      },
      "sync_block()");
}

TEST(warp, a_row_that_is_not_aligned_or_outside_is_a_fault) {
  const auto load_from = [](int offset) {
    return [offset] {
      std::uint32_t fragments[4];
      load_matrices(fragments, shared_memory() + offset);
    };
  };
  expect_no_fault({.threads = 32, .shared_bytes = 64}, load_from(48));
  expect_fault({.threads = 32, .shared_bytes = 64}, load_from(8), "no multiple of 16");
  expect_fault({.threads = 32, .shared_bytes = 64}, load_from(64), "of shared memory");
  expect_fault({.threads = 32, .shared_bytes = 64}, load_from(-16), "of shared memory");
}

}  // namespace
}  // namespace ringlab::cuda::emulator
