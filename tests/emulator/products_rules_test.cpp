// The rules of wgmma: each mistake is found, and its correct twin passes.
#include <algorithm>
#include <cmath>

#include "tests/emulator/kernels.h"
#include "tests/emulator/matrices.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kOperandBytes = 64 * 128;
const Launch kProductLaunch{.threads = 128, .shared_bytes = 2 * kOperandBytes};

struct ProductHabits {
  bool fences = true;
  bool begins = true;
  bool commits = true;
  int pending = 0;  ///< of products_wait
  bool touches = false;
  bool overwrites_early = false;
  int different_warp = -1;
  bool one_warp_leaves = false;
};

/// d = A Bᵀ of ones: 16 everywhere, and what thread 70 reads of it.
std::function<void()> product_of_ones(float& read, const ProductHabits& habits) {
  return [&read, habits] {
    auto* ones = reinterpret_cast<BFloat16*>(shared_memory());
    for (int i = thread_index(); i < kOperandBytes; i += 128) ones[i] = BFloat16(1.0);
    if (habits.fences) fence_async_proxy();
    sync_block();
    if (habits.one_warp_leaves && thread_index() / 32 == 2) return;
    float d[32] = {};
    if (habits.begins) products_begin();
    const Operand a{shared_memory(), 64};
    const Operand b{shared_memory() + kOperandBytes, 64};
    const int channel = thread_index() / 32 == habits.different_warp ? 16 : 0;
    multiply_rows<BFloat16, 64>(d, a, b, channel, false);
    if (habits.commits) products_commit();
    if (habits.touches) d[3] = 0;
    if (habits.overwrites_early) ones[64 * 64 + 64 * (thread_index() / 2)] = BFloat16(5.0);
    if (habits.pending == 0) {
      products_wait<0>();
    } else {
      products_wait<1>();
    }
    if (thread_index() == 70) read = d[3];
    products_commit();
    products_wait<0>();
  };
}

TEST(products_rules, a_correct_product_passes_for_every_seed) {
  float read = 0;
  const auto kernel = product_of_ones(read, {});
  EXPECT_EQ(count_wrong(kProductLaunch, kernel, [&] { return read == 16; }), 0);
}

TEST(products_rules, accumulators_hold_nan_until_their_group_was_waited_for) {
  float read = 0;
  const auto is_right = [&] { return read == 16; };
  EXPECT_EQ(count_wrong(kProductLaunch, product_of_ones(read, {.commits = false}), is_right),
            kSeeds);
  EXPECT_EQ(count_wrong(kProductLaunch, product_of_ones(read, {.pending = 1}), is_right), kSeeds);
  EXPECT_TRUE(std::isnan(read));
}

TEST(products_rules, mistakes_are_faults) {
  float read = 0;
  const auto expect = [&read](const ProductHabits& habits, const std::string& text) {
    expect_fault(kProductLaunch, product_of_ones(read, habits), text);
  };
  expect({.fences = false}, "no fence_async_proxy()");
  expect({.begins = false}, "products_begin() must precede");
  expect({.touches = true}, "accumulators were changed");
  expect({.overwrites_early = true}, "no fence_async_proxy()");
  expect({.different_warp = 1}, "issue different ones");
  expect({.one_warp_leaves = true}, "products_wait<0>()");
}

TEST(products_rules, a_fence_by_one_thread_before_the_others_wrote_is_not_enough) {
  expect_fault(
      kProductLaunch,
      [] {
        auto* ones = reinterpret_cast<BFloat16*>(shared_memory());
        for (int i = thread_index(); i < kOperandBytes; i += 128) ones[i] = BFloat16(1.0);
        if (thread_index() == 0) fence_async_proxy();
        sync_block();
        float d[32];
        products_begin();
        multiply_rows<BFloat16, 64>(d, {shared_memory(), 64}, {shared_memory(), 64}, 0, false);
        products_commit();
        products_wait<0>();
      },
      "no fence_async_proxy()");
}

/// Weights packed and multiplied, with a products_begin() after the packing or before.
std::function<void()> weights_of_ones(bool begins_after) {
  return [begins_after] {
    auto* ones = reinterpret_cast<Half*>(shared_memory());
    for (int i = thread_index(); i < kOperandBytes; i += 128) ones[i] = Half(1.0);
    fence_async_proxy();
    sync_block();
    float d[32] = {};
    if (!begins_after) products_begin();
    const std::uint32_t pair = pack<Half>(1, 1);
    if (begins_after) products_begin();
    multiply_weights<Half, 64>(d, {pair, pair, pair, pair}, {shared_memory(), 64}, 0);
    products_commit();
    products_wait<0>();
    EXPECT_TRUE(std::all_of(d, d + 32, [](float x) { return x == 16; }));
  };
}

TEST(products_rules, weights_packed_after_products_begin_are_a_fault) {
  expect_no_fault(kProductLaunch, weights_of_ones(true));
  expect_fault(kProductLaunch, weights_of_ones(false), "operands in registers changed");
}

/// Two products on the same operand while the first one's result is used: as kernels overlap them.
std::function<void()> overlapped(float& read, bool releases_early) {
  return [&read, releases_early] {
    auto* ones = reinterpret_cast<BFloat16*>(shared_memory());
    for (int i = thread_index(); i < kOperandBytes; i += 128) ones[i] = BFloat16(1.0);
    fence_async_proxy();
    sync_block();
    const Operand operand{shared_memory(), 64};
    const Operand other{shared_memory() + kOperandBytes, 64};
    float first[32];
    float second[32];
    products_begin();
    multiply_rows<BFloat16, 64>(first, operand, operand, 0, false);
    products_commit();
    for (int c = 0; c < 64; c += 16) multiply_rows<BFloat16, 64>(second, other, other, c, c > 0);
    products_commit();
    products_wait<1>();
    EXPECT_EQ(first[5], 16);
    if (!releases_early) products_wait<0>();
    sync_block();
    ones[64 * 64 + 32 * thread_index()] = BFloat16(3.0);
    fence_async_proxy();
    products_wait<0>();
    if (thread_index() == 127) read = second[7];
  };
}

TEST(products_rules, operands_are_read_as_late_as_the_wait) {
  float read = 0;
  const auto is_right = [&] { return read == 64; };
  EXPECT_EQ(count_wrong(kProductLaunch, overlapped(read, false), is_right), 0);
  EXPECT_GT(count_wrong(kProductLaunch, overlapped(read, true), is_right), 20);
}

TEST(products_rules, leaving_without_waiting_is_a_fault) {
  expect_fault(
      kProductLaunch,
      [] {
        float d[32];
        fence_async_proxy();
        products_begin();
        multiply_rows<BFloat16, 64>(d, {shared_memory(), 64}, {shared_memory(), 64}, 0, false);
        products_commit();
      },
      "did not wait");
}

TEST(products_rules, three_warps_are_no_warpgroup) {
  expect_fault(
      {.threads = 96, .shared_bytes = kOperandBytes},
      [] {
        float d[32];
        products_begin();
        multiply_rows<BFloat16, 64>(d, {shared_memory(), 64}, {shared_memory(), 64}, 0, false);
      },
      "four warps");
}

}  // namespace
}  // namespace ringlab::cuda::emulator
