// What ALiBi subtracts, against distances in integers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/optimized/cpu/alibi_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "optimized/cpu/modifiers/alibi-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// scores (keys.count, queries) change in place.
template <class Real>
void subtract_all(Real slope, std::int64_t shift, const std::vector<std::int64_t>& queries,
                  const PositionRun& keys, std::vector<Real>& scores) {
  const std::int64_t width = tile_width<Real>(), all = std::ssize(queries);
  const AlignedArray<Real> tile = aligned_array<Real>(keys.count * width);
  std::fill(tile.get(), tile.get() + keys.count * width, Real(0));
  DistanceLanes<Real> distances;
  for (std::int64_t first = 0; first < all; first += width) {
    const std::int64_t count = std::min(width, all - first);
    const auto each = [&](auto&& move) {
      for (std::int64_t j = 0; j < keys.count; ++j) {
        for (std::int64_t lane = 0; lane < count; ++lane) {
          move(scores[static_cast<std::size_t>(j * all + first + lane)],
               tile.get()[j * width + lane]);
        }
      }
    };
    each([](Real& score, Real& in_tile) { in_tile = score; });
    distances.load(queries.data() + first, count, shift);
    distances.subtract(slope, keys, tile.get());
    each([](Real& score, Real& in_tile) { score = in_tile; });
  }
}
void subtract_floats(float slope, std::int64_t shift, const std::vector<std::int64_t>& queries,
                     const PositionRun& keys, std::vector<float>& scores) {
  subtract_all(slope, shift, queries, keys, scores);
}
void subtract_doubles(double slope, std::int64_t shift, const std::vector<std::int64_t>& queries,
                      const PositionRun& keys, std::vector<double>& scores) {
  subtract_all(slope, shift, queries, keys, scores);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/on_vectors.h"
#include "tests/repetitions.h"

namespace ringlab::cpu {
HWY_EXPORT(subtract_floats);
HWY_EXPORT(subtract_doubles);
namespace {

class Alibi : public OnVectors {};

/// Positions around these numbers: near, at the end of the numbers that Real counts without
/// rounding, and beyond it.
constexpr int kFarBits[] = {4, 22, 23, 24, 31, 40, 51, 52, 53, 61};

template <class Real, class Subtract>
void expect_distances(Subtract subtract) {
  constexpr long double kRoundoff = std::numeric_limits<Real>::epsilon() / 2;
  std::mt19937_64 random(3);
  for (int trial = 0; trial < repetitions(400); ++trial) {
    const std::int64_t far = std::int64_t{1} << kFarBits[trial % 10];
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    const std::int64_t count = 1 + below(9), stride = 1 + below(trial % 3 == 0 ? far / 8 : 3);
    const PositionRun keys{below(trial % 4 == 0 ? far : 10), count, stride};
    std::vector<std::int64_t> queries(static_cast<std::size_t>(1 + below(60)));
    for (std::int64_t& query : queries) query = trial % 2 == 0 ? below(far) : far - below(9);
    const std::int64_t shift = trial % 5 == 0 ? -below(20) : below(20);
    const auto slope = static_cast<Real>(trial % 7 == 0 ? -0.3 : 0.01 * (trial % 7));
    std::vector<Real> scores;
    for (std::size_t i = 0; i < queries.size() * static_cast<std::size_t>(count); ++i) {
      scores.push_back(static_cast<Real>(below(1000)) / 16);
    }
    const std::vector<Real> before = scores;
    subtract(slope, shift, queries, keys, scores);
    for (std::size_t at = 0; at < scores.size(); ++at) {
      const std::int64_t key = keys.first + static_cast<std::int64_t>(at / queries.size()) * stride;
      const std::int64_t apart = std::abs(queries[at % queries.size()] + shift - key);
      const long double bias = static_cast<long double>(slope) * apart;
      const long double exact = before[at] - bias;
      // Distance and product are rounded, then the difference.
      const int roundings = apart < std::int64_t{1} << std::numeric_limits<Real>::digits ? 1 : 2;
      const long double allowed =
          kRoundoff * (roundings * std::abs(bias) + std::abs(exact)) * (1 + 4 * kRoundoff);
      ASSERT_LE(std::abs(scores[at] - exact), allowed)
          << "query " << queries[at % queries.size()] + shift << ", key " << key << ", trial "
          << trial;
    }
  }
}

TEST_P(Alibi, subtracts_the_slope_times_the_exact_distance) {
  expect_distances<float>([](auto&&... all) { HWY_DYNAMIC_DISPATCH(subtract_floats)(all...); });
}
TEST_P(Alibi, does_so_in_doubles) {
  expect_distances<double>([](auto&&... all) { HWY_DYNAMIC_DISPATCH(subtract_doubles)(all...); });
}

INSTANTIATE_TEST_SUITE_P(On, Alibi, every_kind_of_vectors(), name_of_vectors);

}  // namespace
}  // namespace ringlab::cpu
#endif
