// Every version of the Hopper kernel on the emulated GPU.
#include "optimized/cuda/hopper/forward_hopper_ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "optimized/cuda/hopper/forward_hopper_ladder_tiles.h"
#include "optimized/cuda/hopper/forward_hopper_shapes.h"
#include "tests/emulator/machine/emulate.h"
#include "tests/emulator/machine/tensor_map.h"
#include "tests/optimized/cuda/cuda_kernels.h"

namespace ringlab::cuda {
namespace {

#include "tests/optimized/cuda/hopper/hopper_kernels-inl.h"

template <class A, class B>
bool is_same(A, B) {
  return std::is_same_v<A, B>;
}

TEST(HopperVersions, end_at_the_kernel_as_it_is) {
  for (const bool all_seen : {false, true}) {
    for (const std::int32_t channels : {64, 128}) {
      ForwardCall<BFloat16> call;
      call.shape = {.queries = 1, .keys = 1, .head_dim = channels, .v_dim = channels};
      call.mask.hides_nothing = all_seen;
      bool last_is_the_kernel = false;
      for_each_hopper_version([&](const HopperVersion& version, auto tile) {
        if (version.channels != channels || version.kind != HopperVersionKind::step) return;
        if (version.needs_everything_seen && !all_seen) return;
        with_hopper_tile(call, [&](auto kernel) {
          last_is_the_kernel = is_same(tile, kernel) && version.persistent && version.sections;
        });
      });
      EXPECT_TRUE(last_is_the_kernel) << channels << all_seen;
    }
  }
}

TEST(HopperVersions, have_names_and_words_of_their_own) {
  std::set<std::pair<std::int32_t, std::string_view>> names;
  for (const HopperVersion& version : list_hopper_versions()) {
    EXPECT_FALSE(version.what.empty()) << version.name;
    EXPECT_TRUE(names.insert({version.channels, version.name}).second) << version.name;
  }
  EXPECT_GE(names.size(), 12u);
}

/// From -150 to 8, which is what the exponents of weights are, in steps of 2^-16 and less.
TEST(Exp2Polynomial, is_as_near_as_it_says) {
  double worst = 0;
  for (int i = -150 * (1 << 16); i <= 8 * (1 << 16); ++i) {
    const float x = static_cast<float>(i) * 0x1p-16f;
    const double exact = std::exp2(static_cast<double>(x));
    const double got = static_cast<double>(exp2_polynomial(x));
    if (x < -126) {
      EXPECT_LE(std::abs(got - exact), 0x1p-126) << x;
    } else {
      worst = std::max(worst, std::abs(got / exact - 1));
    }
  }
  EXPECT_LE(worst, kPolynomialError);
  EXPECT_GE(worst, kPolynomialError / 2) << "it could say more";
}

TEST(Exp2Polynomial, of_limits_are_limits) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp2_polynomial(-infinity), 0);
  EXPECT_EQ(exp2_polynomial(-127), 0);
  EXPECT_EQ(exp2_polynomial(-1e30f), 0);
  for (int n = -126; n <= 100; ++n) {
    EXPECT_EQ(exp2_polynomial(static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
  }
  EXPECT_TRUE(std::isnan(exp2_polynomial(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace ringlab::cuda

/// Without versions that differ in the grid alone, which is the emulator's.
std::vector<ringlab::BlockKernel> ringlab::every_block_kernel() {
  using namespace cuda;
  std::vector<BlockKernel> all;
  for_each_hopper_version([&](const HopperVersion& version, auto tile) {
    using Tile = decltype(tile);
    constexpr bool kIsTheKernels = std::is_same_v<Tile, ladder::Tile<Tile::kChannels>>;
    if (kIsTheKernels && !version.sections) return;
    all.push_back(version_kernel(version, &emulate_hopper_tile<Tile>));
  });
  return all;
}
