// What is particular to the kernel that multiplies bf16: the instruction, subnormal numbers,
// scales.
#include "optimized/cpu/bf16/bf16_dot.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/bf16/bf16_dot_tile.h"
#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/on_vectors.h"
#include "tests/optimized/cpu/trial.h"
#include "tests/repetitions.h"

namespace ringlab::cpu {
namespace {

class Bf16Dot : public OnVectors {};

float value_of(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
/// One of the two additions of the instruction, as its manuals have it.
float added(float a, float b, float sum) {
  return flushed(std::fma(flushed(a), flushed(b), flushed(sum)));
}

/// Random bits, or numbers near 1 of which sums cancel.
std::uint16_t random_bf16(std::mt19937& random, bool any_bits) {
  const std::uint32_t bits = static_cast<std::uint32_t>(random());
  return static_cast<std::uint16_t>(any_bits ? bits : (bits & 0x807fu) | (124 + bits % 7) << 7);
}

TEST(Bf16DotInstruction, adds_the_high_product_and_then_the_low_one_each_rounded_and_flushed) {
  if (!bf16_dot::available()) GTEST_SKIP() << "no bf16 products here";
  std::mt19937 random(1);
  constexpr std::int64_t kPairs = 3;
  const auto queries = aligned_array<std::uint32_t>(kPairs * bf16_dot::kWidth);
  const auto scores = aligned_array<float>(bf16_dot::kWidth);
  const auto tops = aligned_array<float>(bf16_dot::kWidth);
  for (int trial = 0; trial < repetitions(20000); ++trial) {
    const bool any_bits = trial % 2 == 0;
    std::uint16_t key[2 * kPairs];
    for (std::uint16_t& number : key) number = random_bf16(random, any_bits);
    for (std::size_t i = 0; i < kPairs * bf16_dot::kWidth; ++i) {
      queries[i] = random_bf16(random, any_bits) | std::uint32_t{random_bf16(random, any_bits)}
                                                       << 16;
    }
    bf16_dot::score({.queries = queries.get(),
                     .keys = key,
                     .pairs = kPairs,
                     .count = 1,
                     .scores = scores.get(),
                     .tops = tops.get()});
    for (std::size_t lane = 0; lane < bf16_dot::kWidth; ++lane) {
      float due = 0;
      for (std::size_t t = 0; t < kPairs; ++t) {
        const std::uint32_t pair = queries[t * bf16_dot::kWidth + lane];
        due = added(value_of(pair >> 16), value_of(key[2 * t + 1]), due);
        due = added(value_of(pair & 0xffffu), value_of(key[2 * t]), due);
      }
      ASSERT_TRUE(scores[lane] == due || (std::isnan(scores[lane]) && std::isnan(due)))
          << "trial " << trial << ": " << scores[lane] << " instead of " << due;
    }
  }
}

/// One query and some keys of which only channel `channel` is not 0, so that no sum is rounded.
Trial<BFloat16> one_product(std::int64_t head_dim, double query, const std::vector<double>& keys,
                            std::int64_t channel) {
  const auto count = static_cast<std::int64_t>(keys.size());
  Trial<BFloat16> trial{.mask = parse_mask("full").bind(1, count),
                        .queries = Positions::all(1),
                        .keys = Positions::all(count)};
  trial.q_extents = {1, 1, 1, head_dim};
  trial.k_extents = {1, 1, count, head_dim};
  trial.v_extents = {1, 1, count, 1};
  trial.q.resize(static_cast<std::size_t>(head_dim), BFloat16(0.0));
  trial.k.resize(static_cast<std::size_t>(count * head_dim), BFloat16(0.0));
  trial.v.resize(static_cast<std::size_t>(count), BFloat16(1.0));
  trial.q[static_cast<std::size_t>(channel)] = BFloat16(query);
  for (std::int64_t j = 0; j < count; ++j) {
    trial.k[static_cast<std::size_t>(j * head_dim + channel)] =
        BFloat16(keys[static_cast<std::size_t>(j)]);
  }
  trial.tiles = {.queries = 48, .keys = 8};
  return trial;
}

float row_max(const Trial<BFloat16>& trial) {
  SoftmaxState<float> state;
  float acc = 0;
  forward_block(trial.block(), &state, &acc);
  return state.row_max;
}

TEST_P(Bf16Dot, does_not_lose_the_product_of_a_subnormal_and_a_large_number) {
  const double least = 0x1p-133, large = 0x1p127;
  for (const std::int64_t head_dim : {1, 2, 3, 8, 33}) {
    for (std::int64_t channel = 0; channel < head_dim; ++channel) {
      const Trial<BFloat16> keys =
          one_product(head_dim, large, {-3 * least, 5 * least, least}, channel);
      const Trial<BFloat16> query =
          one_product(head_dim, -7 * least, {large / 2, -large, 0, large}, channel);
      for (const Trial<BFloat16>* trial : {&keys, &query}) {
        use_vectors(GetParam());
        const float got = row_max(*trial);
        use_vectors("avx512");
        EXPECT_EQ(got, row_max(*trial)) << "head_dim " << head_dim << ", channel " << channel;
        EXPECT_GT(got, 0.01f);
      }
    }
  }
}

TEST_P(Bf16Dot, leaves_scales_that_are_not_positive_and_normal_to_the_other_kernel) {
  const Trial<BFloat16> trial = random_trial<BFloat16>(1);
  for (const double scale : {0.0, -0.3, 1e-45, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    Block<BFloat16> block = trial.block();
    EXPECT_TRUE(bf16_dot::takes(block));
    block.scale = scale;
    EXPECT_FALSE(bf16_dot::takes(block)) << scale;
  }
}

TEST_P(Bf16Dot, weights_of_the_largest_score_are_exactly_1) {
  for (const double scale : {0.3, 1.0, 0.088388}) {
    const Trial<BFloat16> trial = one_product(5, 1.375, std::vector<double>(20, 3.3125), 2);
    Block<BFloat16> block = trial.block();
    block.scale = scale;
    SoftmaxState<float> state;
    float acc = 0;
    forward_block(block, &state, &acc);
    EXPECT_EQ(state.row_sum, 20);
    EXPECT_EQ(acc, 20);
    const auto unit = static_cast<float>(scale * std::numbers::log2e);
    EXPECT_EQ(state.row_max, unit * (1.375f * 3.3125f));
  }
}

INSTANTIATE_TEST_SUITE_P(Products, Bf16Dot, products_of_bf16(), name_of_vectors);

}  // namespace
}  // namespace ringlab::cpu
