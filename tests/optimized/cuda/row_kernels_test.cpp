#include "optimized/cuda/row_kernels.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/emulator/machine/emulate.h"

namespace ringlab::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Blocks too few for all rows, and more than there are rows.
constexpr int kBlocks[] = {1, 2, 40};

template <class Code>
void launch(int blocks, const Code& code) {
  emulator::emulate({.blocks = blocks, .threads = kRowThreads, .seed = 1}, code);
}

std::vector<float> normal_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(normal(random));
  return values;
}

template <class Element>
std::vector<Element> rounded(const std::vector<float>& values) {
  std::vector<Element> elements;
  for (const float x : values) elements.push_back(static_cast<Element>(static_cast<double>(x)));
  return elements;
}

template <class Element>
class RowKernels : public testing::Test {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(RowKernels, Elements);

TYPED_TEST(RowKernels, widen_every_number) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    TypeParam x;
    x.bits = static_cast<std::uint16_t>(bits);
    const float got = widen(x), want = static_cast<float>(x);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(got, want) << bits;
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << bits;
    }
  }
}

TYPED_TEST(RowKernels, clear_states_makes_empty_rows) {
  for (const int blocks : kBlocks) {
    constexpr std::int64_t kRows = 11;
    constexpr int kChannels = 72;
    std::vector<SoftmaxState<float>> states(kRows, {kNaN, kNaN});
    std::vector<float> accs(kRows * kChannels, kNaN);
    const ClearStates call{kRows, kChannels, {states.data(), accs.data()}};
    launch(blocks, [&] { clear_states_block(call); });
    for (const auto& state : states) {
      EXPECT_EQ(state.row_max, -kInfinity);
      EXPECT_EQ(state.row_sum, 0);
    }
    EXPECT_EQ(accs, std::vector<float>(kRows * kChannels));
  }
}

TYPED_TEST(RowKernels, finish_rows_divides_and_leaves_empty_rows_empty) {
  constexpr std::int64_t kRows = 9;
  constexpr int kChannels = 40;
  std::vector<float> accs = normal_values(kRows * kChannels, 1);
  std::vector<SoftmaxState<float>> states;
  for (int row = 0; row < kRows; ++row) states.push_back({5.0f * static_cast<float>(row), 3.0f});
  states[4] = {};
  std::fill_n(accs.begin() + 4 * kChannels, kChannels, 0.0f);
  states[7] = {-kInfinity, kNaN};  // all that it saw was NaN
  std::fill_n(accs.begin() + 7 * kChannels, kChannels, kNaN);
  for (const int blocks : kBlocks) {
    std::vector<TypeParam> out(accs.size());
    std::vector<float> lse(kRows);
    const FinishRows<TypeParam> call{
        kRows, kChannels, {states.data(), accs.data()}, out.data(), lse.data()};
    launch(blocks, [&] { finish_rows_block(call); });
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t i = row * kChannels; i < (row + 1) * kChannels; ++i) {
        const float got = static_cast<float>(out[i]);
        if (row == 7) {
          EXPECT_TRUE(std::isnan(got));
        } else {
          const float sum = row == 4 ? 1.0f : 3.0f;
          EXPECT_EQ(got, static_cast<float>(TypeParam(static_cast<double>(accs[i] / sum))));
        }
      }
      if (row == 7) {
        EXPECT_TRUE(std::isnan(lse[row]));
      } else if (row == 4) {
        EXPECT_EQ(lse[row], -kInfinity);
      } else {
        const double want = 5.0 * static_cast<double>(row) * std::log(2.0) + std::log(3.0);
        EXPECT_NEAR(lse[row], want, 4 * 0x1p-24 * want);
      }
    }
  }
}

/// Rows 2 to 5 of the seven of each of two heads: into an empty state, into others, and with
/// nothing.
TYPED_TEST(RowKernels, merge_rows_adds_finished_rows_to_their_places) {
  constexpr std::int32_t kQueries = 7, kFirst = 2, kCount = 4, kChannels = 40;
  constexpr std::int64_t kHeads = 2, kRows = kHeads * kQueries;
  const std::vector<float> before = normal_values(kRows * kChannels, 4);
  const auto out = rounded<TypeParam>(normal_values(kHeads * kCount * kChannels, 5));
  for (const int blocks : kBlocks) {
    std::vector<float> lse = normal_values(kHeads * kCount, 6);
    lse[1] = -kInfinity;
    std::vector<float> accs = before;
    std::vector<SoftmaxState<float>> states(kRows, {1.0f, 2.0f});
    states[kFirst] = {};
    std::fill_n(accs.begin() + kFirst * kChannels, kChannels, 0.0f);
    const std::vector<float> old_accs = accs;
    const std::vector<SoftmaxState<float>> old = states;
    const MergeRows<TypeParam> call{.heads = kHeads,
                                    .queries = kQueries,
                                    .first = kFirst,
                                    .count = kCount,
                                    .channels = kChannels,
                                    .out = out.data(),
                                    .lse = lse.data(),
                                    .running = {states.data(), accs.data()}};
    launch(blocks, [&] { merge_rows_block(call); });
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t head = row / kQueries, i = row % kQueries - kFirst;
      const bool is_merged = i >= 0 && i < kCount && lse[head * kCount + i] != -kInfinity;
      const double mine = std::exp2(static_cast<double>(old[row].row_max));
      const double theirs = is_merged ? std::exp(static_cast<double>(lse[head * kCount + i])) : 0;
      const double unit = std::exp2(static_cast<double>(states[row].row_max));
      const double sum = mine * old[row].row_sum + theirs;
      // Two exponentials of 2 ulp each, and what rounds the exponents that they are of.
      constexpr double kError = 2 * (0x1p-22 + 4 * 0x1p-24 * 4);
      EXPECT_NEAR(states[row].row_sum * unit, sum, kError * sum) << "row " << row;
      for (int c = 0; c < kChannels; ++c) {
        const std::int64_t at = row * kChannels + c;
        if (!is_merged) {
          EXPECT_EQ(accs[at], old_accs[at]);
          continue;
        }
        const double other = static_cast<double>(out[(head * kCount + i) * kChannels + c]);
        const double magnitude = mine * std::abs(old_accs[at]) + theirs * std::abs(other);
        EXPECT_NEAR(accs[at] * unit, mine * old_accs[at] + theirs * other, kError * magnitude);
      }
    }
    EXPECT_EQ(states[kFirst].row_sum, 1) << "the first to come is taken as it is";
  }
}

TYPED_TEST(RowKernels, merge_rows_keeps_what_is_no_number) {
  const auto one = rounded<TypeParam>({1, 1});
  for (const auto& [state, lse] :
       {std::pair{SoftmaxState<float>{0, 1}, kNaN}, std::pair{SoftmaxState<float>{}, kNaN},
        std::pair{SoftmaxState<float>{-kInfinity, kNaN}, 0.0f},
        std::pair{SoftmaxState<float>{kNaN, 1}, 0.0f}}) {
    SoftmaxState<float> merged = state;
    float accs[2] = {1, 1};
    const MergeRows<TypeParam> call{.heads = 1,
                                    .queries = 1,
                                    .first = 0,
                                    .count = 1,
                                    .channels = 2,
                                    .out = one.data(),
                                    .lse = &lse,
                                    .running = {&merged, accs}};
    launch(1, [&] { merge_rows_block(call); });
    EXPECT_TRUE(std::isnan(merged.row_sum));
  }
}

/// Rows 2 to 4 of the seven of each of three heads.
TYPED_TEST(RowKernels, add_rows_adds_to_its_places_and_to_no_others) {
  constexpr std::int32_t kHeads = 3, kRows = 7, kFirst = 2, kCount = 3;
  for (const int channels : {2, 8, 72}) {
    const std::vector<float> before = normal_values(kHeads * kRows * channels, 8);
    const auto from = rounded<TypeParam>(normal_values(kHeads * kCount * channels, 9));
    for (const int blocks : kBlocks) {
      std::vector<float> to = before;
      const AddRows<TypeParam> call{.heads = kHeads,
                                    .rows = kRows,
                                    .first = kFirst,
                                    .count = kCount,
                                    .channels = channels,
                                    .from = from.data(),
                                    .to = to.data()};
      launch(blocks, [&] { add_rows_block(call); });
      for (std::int64_t row = 0; row < kHeads * kRows; ++row) {
        const std::int64_t head = row / kRows, i = row % kRows - kFirst;
        const bool is_added = i >= 0 && i < kCount;
        for (int c = 0; c < channels; ++c) {
          const auto at = static_cast<std::size_t>(row * channels + c);
          const auto source = static_cast<std::size_t>((head * kCount + i) * channels + c);
          const float more = is_added ? static_cast<float>(from[source]) : 0;
          EXPECT_EQ(to[at], before[at] + more) << "row " << row << ", channel " << c;
        }
      }
    }
  }
}

TEST(PackRowsKernel, moves_numbers_of_rows_together) {
  constexpr std::int32_t kHeads = 50, kRows = 11, kFirst = 4, kCount = 6;
  const std::vector<float> from = normal_values(kHeads * kRows, 10);
  for (const int blocks : kBlocks) {
    std::vector<float> to(kHeads * kCount, kNaN);
    const PackRows call{.heads = kHeads,
                        .rows = kRows,
                        .first = kFirst,
                        .count = kCount,
                        .from = from.data(),
                        .to = to.data()};
    launch(blocks, [&] { pack_rows_block(call); });
    for (std::size_t i = 0; i < to.size(); ++i) {
      EXPECT_EQ(to[i], from[i / kCount * kRows + kFirst + i % kCount]) << i;
    }
  }
}

TYPED_TEST(RowKernels, delta_rows_sums_the_products_of_a_row) {
  for (const int channels : {2, 8, 64, 72, 256}) {
    constexpr std::int64_t kRows = 7;
    const auto out = rounded<TypeParam>(normal_values(kRows * channels, 2));
    const auto dout = rounded<TypeParam>(normal_values(kRows * channels, 3));
    for (const int blocks : kBlocks) {
      std::vector<float> delta(kRows, kNaN);
      const DeltaRows<TypeParam> call{kRows, channels, out.data(), dout.data(), delta.data()};
      launch(blocks, [&] { delta_rows_block(call); });
      for (std::int64_t row = 0; row < kRows; ++row) {
        double want = 0, magnitude = 0;
        for (std::int64_t i = row * channels; i < (row + 1) * channels; ++i) {
          const double product = static_cast<double>(out[static_cast<std::size_t>(i)]) *
                                 static_cast<double>(dout[static_cast<std::size_t>(i)]);
          want += product;
          magnitude += std::abs(product);
        }
        // One rounding per product and per addition on the way.
        const double roundings = 2 + channels / 32 + 6;
        EXPECT_NEAR(delta[static_cast<std::size_t>(row)], want,
                    roundings * 0x1p-24 * 1.0001 * magnitude)
            << channels << " channels, row " << row;
      }
    }
  }
}

TYPED_TEST(RowKernels, scale_to_rounds_once_after_the_product) {
  constexpr std::int64_t kCount = 1026;
  const std::vector<float> from = normal_values(kCount, 4);
  for (const int blocks : kBlocks) {
    std::vector<TypeParam> to(kCount);
    const ScaleTo<TypeParam> call{kCount, from.data(), 0.3f, to.data()};
    launch(blocks, [&] { scale_to_block(call); });
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(to[i].bits, TypeParam(static_cast<double>(from[i] * 0.3f)).bits) << i;
    }
  }
}

}  // namespace
}  // namespace ringlab::cuda
