// wgmma against plain matrix products: both types, every N, any channel and any key.
#include "tests/emulator/machine/products.h"

#include "tests/emulator/kernels.h"
#include "tests/emulator/matrices.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kSomeSeeds = 6;  // the rules have tests of their own

/// visit(row, column, register) for what a thread of a warpgroup holds of (64, N).
template <int N, class Visitor>
void for_registers(Visitor visit) {
  const int thread = thread_index() % 128;
  for (int n = 0; n < N / 8; ++n) {
    for (int i = 0; i < 4; ++i) {
      visit(16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2), 8 * n + 2 * (thread % 4) + i % 2,
            4 * n + i);
    }
  }
}

void run(const Launch& launch, const std::function<void()>& kernel) {
  for (std::uint64_t seed = 0; seed < kSomeSeeds; ++seed) {
    Launch seeded = launch;
    seeded.seed = seed;
    EXPECT_EQ(fault_of(seeded, kernel), "");
  }
}

/// Two warpgroups, each with 64 of the 128 rows of A; channels from `first` to `last`.
template <class Element, int N>
void check_rows(int first, int last) {
  const auto a = integers<Element>(128, last, N);
  const auto b = integers<Element>(N, last, N + 1);
  const int b_rows = (N + 7) / 8 * 8 + 8;  // boxes may be higher than the operand
  const int a_bytes = (last + 63) / 64 * 128 * 128;
  const int b_bytes = (last + 63) / 64 * b_rows * 128;
  run({.threads = 256, .shared_bytes = a_bytes + b_bytes}, [&] {
    std::byte* left = shared_memory();
    if (thread_index() == 9) {
      store_boxes(left, a, 128);
      store_boxes(left + a_bytes, b, b_rows);
      fence_async_proxy();
    }
    sync_block();
    const int group = thread_index() / 128;
    float d[N / 2];
    for (float& x : d) x = 1000;  // overwritten
    products_begin();
    for (int channel = first; channel < last; channel += 16) {
      multiply_rows<Element, N>(d, {left + group * 64 * 128, 128}, {left + a_bytes, b_rows},
                                channel, channel > first);
    }
    products_commit();
    products_wait<0>();
    hold(d);
    int wrong = 0;
    for_registers<N>([&](int row, int column, int i) {
      double expected = 0;
      for (int c = first; c < last; ++c) expected += a.at(64 * group + row, c) * b.at(column, c);
      wrong += d[i] != expected;
    });
    EXPECT_EQ(wrong, 0) << "N " << N << " thread " << thread_index();
  });
}

/// P (64, 32) in registers times keys 16 … 47 of V (64, N).
template <class Element, int N>
void check_weights() {
  const auto p = integers<Element>(64, 32, N);
  const auto v = integers<Element>(64, N, N + 1);
  const int box_rows = 72;
  run({.threads = 128, .shared_bytes = N / 64 * box_rows * 128}, [&] {
    if (thread_index() == 9) {
      store_boxes(shared_memory(), v, box_rows);
      fence_async_proxy();
    }
    sync_block();
    const int row = 16 * (thread_index() / 32) + thread_index() % 32 / 4;
    const auto pair = [&](int r, int k) {
      return pack<Element>(static_cast<float>(p.at(r, k)), static_cast<float>(p.at(r, k + 1)));
    };
    std::uint32_t weights[2][4];
    for (int step = 0; step < 2; ++step) {
      const int k = 16 * step + 2 * (thread_index() % 4);
      weights[step][0] = pair(row, k);
      weights[step][1] = pair(row + 8, k);
      weights[step][2] = pair(row, k + 8);
      weights[step][3] = pair(row + 8, k + 8);
    }
    float d[N / 2];
    for_registers<N>([&](int r, int column, int i) { d[i] = static_cast<float>(r - column); });
    products_begin();
    for (int step = 0; step < 2; ++step) {
      multiply_weights<Element, N>(d, weights[step], {shared_memory(), box_rows}, 16 + 16 * step);
    }
    products_commit();
    products_wait<0>();
    int wrong = 0;
    for_registers<N>([&](int r, int column, int i) {
      double expected = r - column;
      for (int k = 0; k < 32; ++k) expected += p.at(r, k) * v.at(16 + k, column);
      wrong += d[i] != expected;
    });
    EXPECT_EQ(wrong, 0) << "N " << N << " thread " << thread_index();
  });
}

template <class Element>
class products : public testing::Test {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(products, Elements);

TYPED_TEST(products, of_rows_are_right_for_every_number_of_keys) {
  [&]<int... kSixteenths>(std::integer_sequence<int, kSixteenths...>) {
    (check_rows<TypeParam, 16 * (kSixteenths + 1)>(0, 32), ...);
  }
  (std::make_integer_sequence<int, 16>());
}

TYPED_TEST(products, of_rows_are_right_across_boxes_and_from_any_channel) {
  check_rows<TypeParam, 64>(0, 256);
  check_rows<TypeParam, 128>(48, 80);
  check_rows<TypeParam, 176>(112, 128);
  check_rows<TypeParam, 80>(16, 192);
}

TYPED_TEST(products, of_weights_are_right_for_every_number_of_channels) {
  check_weights<TypeParam, 64>();
  check_weights<TypeParam, 128>();
  check_weights<TypeParam, 192>();
  check_weights<TypeParam, 256>();
}

}  // namespace
}  // namespace ringlab::cuda::emulator
