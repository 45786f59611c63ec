// Products of matrices: emulated against sums of whole numbers, and this processor's against the
// emulated ones, bit for bit.
#include "optimized/cpu/bf16/bf16_dot_amx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/bf16/bf16_dot.h"
#include "optimized/cpu/bf16/bf16_dot_amx_emulated-inl.h"
#include "optimized/cpu/bf16/bf16_dot_amx_tiles-inl.h"
#include "optimized/cpu/bf16/bf16_dot_lanes.h"
#include "tests/repetitions.h"

namespace ringlab::cpu::bf16_dot {
namespace {

enum class Kind { whole, near_1, any_bits };

/// Numbers in bf16: small whole ones, ones of which sums cancel, or random bits.
class Numbers {
 public:
  explicit Numbers(unsigned seed, Kind kind) : random_(seed), kind_(kind) {}

  std::uint16_t next() {
    const auto bits = static_cast<std::uint32_t>(random_());
    if (kind_ == Kind::whole) return BFloat16(static_cast<double>(bits % 9) - 4).bits;
    if (kind_ == Kind::any_bits) return static_cast<std::uint16_t>(bits);
    return static_cast<std::uint16_t>((bits & 0x807fu) | (124 + bits % 7) << 7);
  }
  template <class T>
  AlignedArray<T> array(std::int64_t count) {
    AlignedArray<T> numbers = aligned_array<T>(count);
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint32_t bits = next();
      // f32 in the high half; pairs have numbers in both.
      if constexpr (std::is_same_v<T, float>) bits <<= 16;
      if constexpr (std::is_same_v<T, std::uint32_t>) bits |= std::uint32_t{next()} << 16;
      if constexpr (sizeof(T) == 2) numbers[at(i)] = static_cast<T>(bits);
      if constexpr (sizeof(T) == 4) numbers[at(i)] = std::bit_cast<T>(bits);
    }
    return numbers;
  }
  std::int64_t up_to(std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(most));
  }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

 private:
  std::mt19937 random_;
  Kind kind_;
};

std::int64_t filled(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}
float product(std::uint32_t left, std::uint32_t right) {
  return widened(left & 0xffffu) * widened(right & 0xffffu) +
         widened(left >> 16) * widened(right >> 16);
}
std::uint32_t pair_of(const std::uint16_t* numbers) {
  return numbers[0] | std::uint32_t{numbers[1]} << 16;
}
void expect_same(const AlignedArray<float>& got, const AlignedArray<float>& due,
                 std::int64_t count) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    if (std::isnan(got[i]) && std::isnan(due[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(due[i]))
        << "at " << i << ": " << got[i] << " instead of " << due[i];
  }
}

/// Sums of `count` numbers, computed three times from the same ones.
struct Sums {
  Sums(Numbers& numbers, std::int64_t all)
      : count(all), plain(numbers.array<float>(all)), emulated(copy()), real(copy()) {}
  AlignedArray<float> copy() const {
    AlignedArray<float> same = aligned_array<float>(count);
    std::copy_n(plain.get(), count, same.get());
    return same;
  }
  /// Plain sums in f32 are exact for whole numbers only.
  void compare(Kind kind) const {
    if (kind == Kind::whole) expect_same(emulated, plain, count);
    if (amx_available()) expect_same(real, emulated, count);
  }

  std::int64_t count;
  AlignedArray<float> plain, emulated, real;
};

class Bf16DotAmx : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!amx_available() && GetParam() != Kind::whole) GTEST_SKIP() << "no AMX here";
  }
};

TEST_P(Bf16DotAmx, scores_are_products_of_keys_and_queries) {
  Numbers numbers(1, GetParam());
  for (int trial = 0; trial < repetitions(30); ++trial) {
    const std::int64_t pairs = filled(numbers.up_to(48), kSide), keys = numbers.up_to(70);
    const auto k = numbers.array<std::uint16_t>(filled(keys, kSide) * 2 * pairs);
    const auto q = numbers.array<std::uint32_t>(pairs * kWidth);
    Sums sums(numbers, filled(keys, kSide) * kWidth);
    Scoring job{.queries = q.get(),
                .keys = k.get(),
                .pairs = pairs,
                .count = keys,
                .scores = sums.emulated.get(),
                .tops = nullptr};
    EmulatedTiles tiles;
    for (std::int64_t row = 0; row < keys; row += kSide) score_side(tiles, job, row);
    job.scores = sums.real.get();
    if (amx_available()) {
      const Multiplying here(kAmxProducts);
      kAmxProducts.score(job);
    }
    for (std::int64_t i = 0; i < sums.count; ++i) {
      float& sum = sums.plain[Numbers::at(i)] = 0;
      for (std::int64_t t = 0; t < pairs; ++t) {
        sum += product(pair_of(k.get() + (i / kWidth * pairs + t) * 2),
                       q[Numbers::at(t * kWidth + i % kWidth)]);
      }
    }
    sums.compare(GetParam());
  }
}

TEST_P(Bf16DotAmx, values_are_added_with_their_weights) {
  Numbers numbers(2, GetParam());
  for (int trial = 0; trial < repetitions(30); ++trial) {
    const std::int64_t pairs = filled(numbers.up_to(64), kSide), panels = numbers.up_to(5);
    const std::int64_t stride = pairs * kSide + 32;
    const auto weights = numbers.array<std::uint32_t>(pairs * kWidth);
    const auto values = numbers.array<std::uint32_t>(panels * stride);
    const auto keep = numbers.array<float>(kWidth);
    Sums sums(numbers, panels * kSide * kWidth);
    Adding job{.weights = weights.get(),
               .pairs = pairs,
               .values = values.get(),
               .panel_stride = stride,
               .panels = panels,
               .keep = trial % 2 == 0 ? keep.get() : nullptr,
               .acc = sums.emulated.get()};
    EmulatedTiles tiles;
    add_weighted_in_tiles(tiles, job);
    job.acc = sums.real.get();
    if (amx_available()) {
      const Multiplying here(kAmxProducts);
      kAmxProducts.add_weighted(job);
    }
    for (std::int64_t i = 0; i < sums.count; ++i) {
      const std::int64_t lane = i % kWidth, channel = i / kWidth;
      float& sum = sums.plain[Numbers::at(i)];
      if (job.keep) sum *= job.keep[lane];
      for (std::int64_t t = 0; t < pairs; ++t) {
        const std::int64_t at = channel / kSide * stride + t / kSide * kSide * kSide +
                                channel % kSide * kSide + t % kSide;
        sum += product(values[Numbers::at(at)], weights[Numbers::at(t * kWidth + lane)]);
      }
    }
    sums.compare(GetParam());
  }
}

TEST_P(Bf16DotAmx, rows_of_queries_are_added_and_nothing_beside_them_is_touched) {
  Numbers numbers(3, GetParam());
  for (int trial = 0; trial < repetitions(30); ++trial) {
    const std::int64_t pairs = numbers.up_to(70), keys = numbers.up_to(40);
    const std::int64_t channels = numbers.up_to(150),
                       panels = (channels + kWidePanel - 1) / kWidePanel;
    const std::int64_t stride = filled(pairs, kSide) * kWidePanel + 16;
    const std::int64_t weight_stride = 2 * filled(pairs, kSide) + 16;
    const auto weights = numbers.array<std::uint16_t>(filled(keys, kSide) * weight_stride);
    auto rows = numbers.array<std::uint32_t>(panels * stride);
    for (std::int64_t panel = 0; panel < panels; ++panel) {  // what fills up is 0
      std::fill(rows.get() + panel * stride + pairs * kWidePanel, rows.get() + (panel + 1) * stride,
                0u);
    }
    for (std::int64_t i = 0; i < filled(keys, kSide) * weight_stride; ++i) {
      if (i % weight_stride >= 2 * pairs) weights[Numbers::at(i)] = 0;
    }
    Sums sums(numbers, (keys + 3) * channels);  // three keys of others
    Gathering job{.weights = weights.get(),
                  .weight_stride = weight_stride,
                  .keys = keys,
                  .rows = rows.get(),
                  .panel_stride = stride,
                  .pairs = pairs,
                  .channels = channels,
                  .sums = sums.emulated.get()};
    EmulatedTiles tiles;
    add_over_queries_in_tiles(tiles, job);
    job.sums = sums.real.get();
    if (amx_available()) {
      const Multiplying here(kAmxProducts);
      kAmxProducts.add_over_queries(job);
    }
    for (std::int64_t i = 0; i < keys * channels; ++i) {
      const std::int64_t key = i / channels, c = i % channels;
      for (std::int64_t t = 0; t < pairs; ++t) {
        sums.plain[Numbers::at(i)] +=
            product(pair_of(weights.get() + key * weight_stride + 2 * t),
                    rows[Numbers::at(c / kWidePanel * stride + t * kWidePanel + c % kWidePanel)]);
      }
    }
    sums.compare(GetParam());
  }
}

TEST(Bf16DotAmxPacking, pairs_of_rows_stand_beside_each_other_by_channel) {
  if (!available()) GTEST_SKIP() << "no bf16 products here";
  Numbers numbers(4, Kind::whole);
  for (int trial = 0; trial < repetitions(30); ++trial) {
    const std::int64_t rows = numbers.up_to(70), channels = numbers.up_to(70);
    const std::int64_t all_rows = filled(rows, kKeyStep), stride = all_rows / 2 * kSide + 32;
    const auto values = numbers.array<std::uint16_t>(rows * channels);
    const auto panels = numbers.array<std::uint32_t>(filled(channels, kSide) / kSide * stride);
    EXPECT_TRUE(kAmxProducts.pack_values({.values = values.get(),
                                          .rows = rows,
                                          .channels = channels,
                                          .panels = panels.get(),
                                          .panel_stride = stride}));
    const auto number = [&](std::int64_t row, std::int64_t c) -> std::uint32_t {
      return row < rows && c < channels ? values[Numbers::at(row * channels + c)] : 0;
    };
    for (std::int64_t c = 0; c < filled(channels, kSide); ++c) {
      for (std::int64_t t = 0; t < all_rows / 2; ++t) {
        const std::int64_t at =
            c / kSide * stride + t / kSide * kSide * kSide + c % kSide * kSide + t % kSide;
        ASSERT_EQ(panels[Numbers::at(at)], number(2 * t, c) | number(2 * t + 1, c) << 16);
      }
    }
  }
}

std::string name_of_kind(const testing::TestParamInfo<Kind>& kind) {
  if (kind.param == Kind::whole) return "whole";
  return kind.param == Kind::near_1 ? "near_1" : "any_bits";
}
INSTANTIATE_TEST_SUITE_P(Numbers, Bf16DotAmx,
                         testing::Values(Kind::whole, Kind::near_1, Kind::any_bits), name_of_kind);

}  // namespace
}  // namespace ringlab::cpu::bf16_dot
