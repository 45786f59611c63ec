// The backward kernel that multiplies bf16, on inputs whose gradients it must get exactly.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/bf16/bf16_dot.h"
#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/on_vectors.h"
#include "tests/optimized/cpu/trial.h"
#include "tests/optimized/kernels/kernel_case.h"
#include "tests/repetitions.h"

namespace ringlab::cpu {
namespace {

class Bf16DotBackward : public OnVectors {};

struct DotGradients {
  std::vector<float> dq, dk, dv;
  friend bool operator==(const DotGradients&, const DotGradients&) = default;
};

/// A block and what the backward pass is given for it.
struct Given {
  Trial<BFloat16> trial;
  std::vector<BFloat16> dout = {};
  std::vector<float> lse = {}, delta = {};

  DotGradients run() const {
    Extents dout_extents = trial.q_extents;
    dout_extents.channels = trial.v_extents.channels;
    DotGradients sums{std::vector<float>(trial.q.size()), std::vector<float>(trial.k.size()),
                      std::vector<float>(trial.v.size())};
    const Block<BFloat16> block = trial.block();
    EXPECT_TRUE(bf16_dot::takes(block));
    backward_block(
        block,
        QueryGradients<BFloat16>{dense_view(dout.data(), dout_extents), lse.data(), delta.data()},
        BlockGradients<BFloat16>{sums.dq.data(), sums.dk.data(), sums.dv.data()});
    return sums;
  }
};

struct Sizes {
  std::int64_t kv_heads, group, queries, keys, head_dim, v_dim;
};

Given empty_block(const Mask& mask, const Sizes& sizes) {
  Given given{.trial = {.mask = mask,
                        .queries = Positions::all(sizes.queries),
                        .keys = Positions::all(sizes.keys)}};
  Trial<BFloat16>& trial = given.trial;
  trial.q_extents = {1, sizes.kv_heads * sizes.group, sizes.queries, sizes.head_dim};
  trial.k_extents = {1, sizes.kv_heads, sizes.keys, sizes.head_dim};
  trial.v_extents = {1, sizes.kv_heads, sizes.keys, sizes.v_dim};
  trial.q.assign(static_cast<std::size_t>(trial.q_extents.size()), BFloat16(0.0));
  trial.k.assign(static_cast<std::size_t>(trial.k_extents.size()), BFloat16(0.0));
  trial.v.assign(static_cast<std::size_t>(trial.v_extents.size()), BFloat16(0.0));
  trial.tiles = {.queries = 96, .keys = 27};
  given.dout.assign(static_cast<std::size_t>(trial.rows() * sizes.v_dim), BFloat16(0.0));
  given.lse.assign(static_cast<std::size_t>(trial.rows()), 0.0f);
  given.delta.assign(given.lse.size(), 0.0f);
  return given;
}

constexpr double kWeight = 0x1p-5;  // of every visible pair

/// Small integers everywhere, scores of 0: q has the even channels to itself, k the odd ones. Every
/// weight is kWeight and every sum a small multiple of it, exact in any order.
Given equal_scores(const Mask& mask, const Sizes& sizes) {
  Given given = empty_block(mask, sizes);
  std::mt19937 random(static_cast<unsigned>(sizes.head_dim * 131 + sizes.keys));
  const auto integer = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(2 * limit + 1)) - limit;
  };
  const auto fill = [&](std::vector<BFloat16>& values, std::int64_t channels, int parity) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool mine = parity < 0 || static_cast<std::int64_t>(i) % channels % 2 == parity;
      values[i] = BFloat16(mine ? integer(7) * 1.0 : 0.0);
    }
  };
  fill(given.trial.q, sizes.head_dim, 0);
  fill(given.trial.k, sizes.head_dim, 1);
  fill(given.trial.v, sizes.v_dim, -1);
  // One channel of dO is not 0, another one in each row, so that dP - delta has few digits.
  for (std::int64_t row = 0; row < given.trial.rows(); ++row) {
    const std::int64_t c = row * 7 % sizes.v_dim;
    given.dout[static_cast<std::size_t>(row * sizes.v_dim + c)] = BFloat16(integer(7) * 1.0);
    given.delta[static_cast<std::size_t>(row)] = static_cast<float>(integer(9));
    given.lse[static_cast<std::size_t>(row)] = static_cast<float>(-std::log(kWeight));
  }
  return given;
}

/// Query row i of the trial (over all heads) against key row j of its K/V head.
void add_pair(const Given& given, std::int64_t i, std::int64_t j, DotGradients& sums) {
  const Trial<BFloat16>& trial = given.trial;
  const std::int64_t d = trial.q_extents.channels, vd = trial.v_extents.channels;
  const auto at = [](const std::vector<BFloat16>& values, std::int64_t index) {
    return static_cast<float>(values[static_cast<std::size_t>(index)]);
  };
  const auto weight = static_cast<float>(kWeight);
  float dp = 0;
  for (std::int64_t c = 0; c < vd; ++c) {
    dp += at(given.dout, i * vd + c) * at(trial.v, j * vd + c);
    sums.dv[static_cast<std::size_t>(j * vd + c)] += weight * at(given.dout, i * vd + c);
  }
  const float ds = weight * (dp - given.delta[static_cast<std::size_t>(i)]);
  for (std::int64_t c = 0; c < d; ++c) {
    sums.dq[static_cast<std::size_t>(i * d + c)] += ds * at(trial.k, j * d + c);
    sums.dk[static_cast<std::size_t>(j * d + c)] += ds * at(trial.q, i * d + c);
  }
}

DotGradients expected(const Given& given) {
  const Trial<BFloat16>& trial = given.trial;
  DotGradients sums{std::vector<float>(trial.q.size()), std::vector<float>(trial.k.size()),
                    std::vector<float>(trial.v.size())};
  const std::int64_t queries = trial.q_extents.tokens, keys = trial.k_extents.tokens;
  const std::int64_t group = trial.q_extents.heads / trial.k_extents.heads;
  for (std::int64_t i = 0; i < trial.rows(); ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      if (sees(trial, i % queries, j)) add_pair(given, i, i / queries / group * keys + j, sums);
    }
  }
  return sums;
}

TEST_P(Bf16DotBackward, sums_small_integers_exactly_whatever_the_sizes) {
  for (const std::int64_t dim : {1, 2, 3, 8, 15, 16, 17, 33, 63, 64, 65, 100, 129}) {
    for (const char* mask : {"full", "causal", "window:5,9", "file:bits", "causal+file:bits"}) {
      const Sizes sizes{.kv_heads = 2,
                        .group = 2,
                        .queries = 1 + dim * 3 % 131,
                        .keys = 131 - dim,
                        .head_dim = dim,
                        .v_dim = dim * 5 % 67 + 1};
      const Given given = equal_scores(mask_of(mask, sizes.queries, sizes.keys), sizes);
      EXPECT_EQ(given.run(), expected(given)) << mask << ", head_dim " << dim;
    }
  }
}

TEST_P(Bf16DotBackward, sums_small_integers_exactly_in_blocks_of_any_size) {
  const Sizes sizes{
      .kv_heads = 1, .group = 3, .queries = 103, .keys = 61, .head_dim = 5, .v_dim = 7};
  Given given = equal_scores(mask_of("causal", sizes.queries, sizes.keys), sizes);
  const DotGradients due = expected(given);
  for (const std::int64_t keys : {1, 2, 7, 8, 33, 60, 61, 500}) {
    for (const std::int64_t queries : {1, 48, 49, 1000}) {
      given.trial.tiles = {.queries = queries, .keys = keys};
      EXPECT_EQ(given.run(), due) << queries << " queries, " << keys << " keys";
    }
  }
}

/// One query and one key, of weight 2^-lse in base 2.
Given one_pair(std::int64_t head_dim, std::int64_t v_dim) {
  return empty_block(parse_mask("full").bind(1, 1), {1, 1, 1, 1, head_dim, v_dim});
}

TEST_P(Bf16DotBackward, rounds_p_and_ds_to_bf16_and_nothing_else) {
  for (int i = 0; i < repetitions(2000); ++i) {
    Given given = one_pair(1, 1);
    const float exponent = static_cast<float>(i) * -0x1.3p-7f;
    given.lse[0] = -in_base_e(exponent);
    given.dout[0] = given.trial.v[0] = BFloat16(1.0);
    given.delta[0] = 1 + 0x1p-12f;  // not a bf16 number: dP - delta is exactly -2^-12
    const double p = std::exp2(-static_cast<double>(in_base_2(given.lse[0])));
    given.trial.k[0] = BFloat16(1.0);
    const DotGradients got = given.run();
    for (const float one : {got.dv[0], got.dq[0] * -0x1p12f}) {
      EXPECT_EQ(one, static_cast<float>(BFloat16(static_cast<double>(one))));
      EXPECT_LE(std::abs(one / p - 1), 0x1p-8 + 0x1p-12) << exponent;
    }
  }
}

TEST_P(Bf16DotBackward, does_not_lose_the_product_of_a_subnormal_and_a_large_number) {
  const BFloat16 small(-5 * 0x1p-133), large(0x1p127), some(0x1p100);
  for (const std::int64_t dim : {1, 2, 3, 8, 65}) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(dim); ++c) {
      Given given = one_pair(dim, dim);
      given.dout[c] = small, given.trial.v[c] = large, given.trial.k[c] = BFloat16(1.0);
      EXPECT_EQ(given.run().dq[c], -5 * 0x1p-6f) << "dP, dO subnormal";
      std::swap(given.dout[c], given.trial.v[c]);
      EXPECT_EQ(given.run().dq[c], -5 * 0x1p-6f) << "dP, v subnormal";
      given.dout[c] = some, given.trial.v[c] = BFloat16(1.0), given.trial.k[c] = small;
      EXPECT_EQ(given.run().dq[c], -5 * 0x1p-33f) << "dQ, k subnormal";
      given.trial.k[c] = BFloat16(0.0), given.trial.q[c] = small;
      EXPECT_EQ(given.run().dk[c], -5 * 0x1p-33f) << "dK, q subnormal";
      given = one_pair(dim, dim);
      given.dout[c] = BFloat16(1.0), given.trial.k[c] = large, given.trial.q[c] = small;
      const float weight = given.run().dv[c];
      EXPECT_EQ(weight, static_cast<float>(BFloat16(std::exp(0.3 * -5 * 0x1p-6)))) << "q k";
      std::swap(given.trial.k[c], given.trial.q[c]);
      EXPECT_EQ(given.run().dv[c], weight) << "q k, k subnormal";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Products, Bf16DotBackward, products_of_bf16(), name_of_vectors);

}  // namespace
}  // namespace ringlab::cpu
