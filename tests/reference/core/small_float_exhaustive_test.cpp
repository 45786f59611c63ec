// fp32 values, rounded to every small format, against a walk along the format's midpoints: those
// beside every midpoint and every 61st in between, or with RINGLAB_ALL_FLOATS=1 all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <thread>
#include <vector>

#include "reference/core/small_float.h"
#include "tests/reference/core/small_float_table.h"

namespace ringlab {
namespace {

using testing::FormatRules;

/// How many inputs there are from one that is tried to the next; primes, so that all low bits occur.
std::uint32_t stride() {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 4099;
#else
  static const bool all = std::getenv("RINGLAB_ALL_FLOATS") != nullptr;
  return all ? 1 : 61;
#endif
}

constexpr std::uint32_t kInfinityBits = 0x7f800000u;

/// Inputs begin … end-1 (bits of non-negative, ascending fp32 values) and their negatives:
/// the number that round to another pattern than the nearest one.
template <class Format>
std::int64_t wrong_in_range(const std::vector<double>& middle, std::uint32_t begin,
                            std::uint32_t end) {
  constexpr std::uint32_t kSign = 1u << Format::sign_shift;
  const auto overflow = static_cast<std::uint32_t>(middle.size());
  const auto at_or_above = std::lower_bound(middle.begin(), middle.end(),
                                            static_cast<double>(std::bit_cast<float>(begin)));
  auto nearest = static_cast<std::uint32_t>(at_or_above - middle.begin());
  std::int64_t wrong = 0;
  for (std::uint64_t bits = begin; bits < end; bits += stride()) {
    const auto x = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    while (nearest < overflow &&
           (x > middle[nearest] || (x == middle[nearest] && nearest % 2 == 1))) {
      ++nearest;
    }
    if (encode_small<Format>(x) != nearest) ++wrong;
    if (encode_small<Format>(-x) != (nearest | kSign)) ++wrong;
  }
  return wrong;
}

/// The same over all finite values and infinity, on every core.
template <class Format>
std::int64_t wrong_in_all(const FormatRules& rules) {
  constexpr std::uint32_t kBlocks = 256;
  constexpr std::uint32_t kInputs = kInfinityBits + 1;
  constexpr std::uint32_t kBlockInputs = (kInputs + kBlocks - 1) / kBlocks;
  const std::vector<double> middle = testing::midpoints(rules);
  std::atomic<std::uint32_t> next_block = 0;
  std::atomic<std::int64_t> wrong = 0;
  const auto work = [&] {
    for (std::uint32_t block; (block = next_block++) < kBlocks;) {
      const std::uint32_t begin = block * kBlockInputs;
      wrong += wrong_in_range<Format>(middle, begin, std::min(begin + kBlockInputs, kInputs));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

/// The same for the fp32 values beside each midpoint, two on either side.
template <class Format>
std::int64_t wrong_beside_midpoints(const std::vector<double>& middle) {
  std::int64_t wrong = 0;
  for (const double midpoint : middle) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(midpoint));
    for (std::uint32_t near = std::max(bits, 2u) - 2; near <= std::min(bits + 2, kInfinityBits);
         ++near) {
      wrong += wrong_in_range<Format>(middle, near, near + 1);
    }
  }
  return wrong;
}

/// fp32 NaN patterns of both signs that do not become the NaN of the format with that sign.
template <class Format>
std::int64_t wrong_nans() {
  std::int64_t wrong = 0;
  for (std::uint64_t bits = kInfinityBits + 1; bits < 0x80000000u; bits += stride()) {
    for (const std::uint32_t sign : {0u, 1u}) {
      const auto pattern = static_cast<std::uint32_t>(bits) | sign << 31;
      const auto x = static_cast<double>(std::bit_cast<float>(pattern));
      if (encode_small<Format>(x) != (Format::nan_pattern | sign << Format::sign_shift)) ++wrong;
    }
  }
  return wrong;
}

template <class Format>
void expect_inputs_right(const FormatRules& rules) {
  EXPECT_EQ(wrong_beside_midpoints<Format>(testing::midpoints(rules)), 0);
  EXPECT_EQ(wrong_in_all<Format>(rules), 0);
  EXPECT_EQ(wrong_nans<Format>(), 0);
}

TEST(Fp32InputsBesideMidpointsAndInBetween, round_to_the_nearest_f16) {
  expect_inputs_right<HalfFormat>(testing::kHalfRules);
}
TEST(Fp32InputsBesideMidpointsAndInBetween, round_to_the_nearest_bf16) {
  expect_inputs_right<BFloat16Format>(testing::kBFloat16Rules);
}
TEST(Fp32InputsBesideMidpointsAndInBetween, round_to_the_nearest_fp8_e4m3) {
  expect_inputs_right<E4M3Format>(testing::kE4M3Rules);
}
TEST(Fp32InputsBesideMidpointsAndInBetween, round_to_the_nearest_fp8_e5m2) {
  expect_inputs_right<E5M2Format>(testing::kE5M2Rules);
}

}  // namespace
}  // namespace ringlab
