// The oracle's own reading of masks, against matrices painted another way and against Mask itself.
#include "reference/attention/visible.h"

#include <gtest/gtest.h>

#include "property_tests/oracles/quad_mask.h"
#include "tests/reference/attention/random_case.h"

namespace ringlab {
namespace {

TEST(Visibility, agrees_with_painted_matrices_and_with_the_interval_algebra) {
  std::int64_t seen = 0, hidden = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const testing::RandomCase c = testing::random_case(seed, {.tokens = 14, .dim = 1});
    const Shape& shape = c.problem.shape;
    const Visibility visible(c.problem.mask, shape.q_tokens, shape.kv_tokens);
    const quad::Matrix painted =
        quad::MaskPainter(shape.q_tokens, shape.kv_tokens).paint(c.problem.mask);
    for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
      for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
        const bool one = visible(i, j);
        ASSERT_EQ(one, painted[static_cast<std::size_t>(i * shape.kv_tokens + j)] != 0)
            << c.problem.mask.text() << " query " << i << " key " << j;
        ASSERT_EQ(one, c.problem.mask.allows(i, j)) << c.problem.mask.text();
        ++(one ? seen : hidden);
      }
    }
  }
  EXPECT_GT(seen, 10000);
  EXPECT_GT(hidden, 10000);
}

TEST(Visibility, of_enormous_windows_does_not_overflow) {
  const Mask mask = Mask({WindowMask{WindowMask::kUnlimited - 1, WindowMask::kUnlimited - 1}});
  const Visibility visible(mask, 3, 5);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) EXPECT_TRUE(visible(i, j));
  }
}

}  // namespace
}  // namespace ringlab
