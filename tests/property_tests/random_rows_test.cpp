// Rows that can be made alone.
#include "property_tests/generators/random_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "reference/core/dtype.h"
#include "reference/core/layout.h"

namespace ringlab::verify {
namespace {

const Extents kWhole{2, 3, 29, 5};

double at(const Tensor<float>& tensor, std::int64_t b, std::int64_t h, std::int64_t t,
          std::int64_t c) {
  return static_cast<double>(tensor(b, h, t, c));
}

TEST(RandomRows, are_the_same_for_every_layout_and_number_of_ranks) {
  const RandomRows random{7, RandomTensor::k};
  const Tensor<float> whole = random_tensor<float>(random, kWhole, Positions::all(kWhole.tokens));
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    for (const int ranks : {1, 2, 3, 7, 31}) {
      const Layout layout(kind, kWhole.tokens, ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        const Positions& tokens = layout.positions(rank);
        const Tensor<float> rows = random_tensor<float>(random, kWhole, tokens);
        ASSERT_EQ(rows.extents().tokens, tokens.size());
        for_each_index(rows.extents(), [&](auto b, auto h, auto t, auto c) {
          ASSERT_EQ(at(rows, b, h, t, c), at(whole, b, h, tokens[t], c));
        });
      }
    }
  }
}

TEST(RandomRows, do_not_depend_on_how_many_tokens_and_heads_there_are) {
  const RandomRows random{7, RandomTensor::v};
  const Tensor<float> few = random_tensor<float>(random, {1, 1, 4, 5}, Positions::all(4));
  const Tensor<float> many = random_tensor<float>(random, kWhole, Positions::all(kWhole.tokens));
  for_each_index(few.extents(), [&](auto b, auto h, auto t, auto c) {
    ASSERT_EQ(at(few, b, h, t, c), at(many, b, h, t, c));
  });
}

TEST(RandomRows, differ_between_seeds_tensors_batches_heads_and_tokens) {
  std::set<double> firsts;
  std::size_t rows = 0;
  for (const std::uint64_t seed : {0u, 1u, 2u}) {
    for (const RandomTensor tensor :
         {RandomTensor::q, RandomTensor::k, RandomTensor::v, RandomTensor::dout}) {
      const Tensor<double> made =
          random_tensor<double>({seed, tensor}, kWhole, Positions::all(kWhole.tokens));
      for_each_index({2, 3, 29, 1}, [&](auto b, auto h, auto t, auto) {
        firsts.insert(made(b, h, t, 0));
        ++rows;
      });
    }
  }
  EXPECT_EQ(firsts.size(), rows);
}

TEST(RandomRows, are_rounded_once_to_what_their_type_can_represent) {
  const RandomRows random{3, RandomTensor::q};
  const Positions tokens = Positions::all(kWhole.tokens);
  const Tensor<double> exact = random_tensor<double>(random, kWhole, tokens);
  const Tensor<BFloat16> rounded = random_tensor<BFloat16>(random, kWhole, tokens);
  for (std::size_t i = 0; i < exact.values().size(); ++i) {
    ASSERT_EQ(static_cast<double>(rounded.values()[i]), round_to(DType::bf16, exact.values()[i]));
  }
}

TEST(RandomRows, have_mean_0_variance_1_and_kurtosis_near_3) {
  const Extents extents{1, 1, 20000, 50};
  const Tensor<double> made =
      random_tensor<double>({11, RandomTensor::q}, extents, Positions::all(extents.tokens));
  double moments[5] = {};
  for (const double x : made.values()) {
    for (int power = 1; power <= 4; ++power) moments[power] += std::pow(x, power);
  }
  const auto count = static_cast<double>(made.size());
  for (double& moment : moments) moment /= count;
  // Five standard deviations of each mean, with the moments of a normal: 1, 3 - 1 and 105 - 9.
  EXPECT_LE(std::abs(moments[1]), 5 * std::sqrt(1 / count));
  EXPECT_LE(std::abs(moments[2] - 1), 5 * std::sqrt(2 / count));
  // A sum of twelve uniforms has kurtosis 3 - 6 / (5 · 12).
  EXPECT_LE(std::abs(moments[4] - 2.9), 5 * std::sqrt(96 / count));
}

}  // namespace
}  // namespace ringlab::verify
