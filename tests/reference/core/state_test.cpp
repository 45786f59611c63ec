#include "reference/core/state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace ringlab {
namespace {

/// A state with its accumulator row.
template <class Real>
struct Row {
  SoftmaxState<Real> state;
  std::vector<Real> acc;
  friend bool operator==(const Row& a, const Row& b) {
    return a.state.row_max == b.state.row_max && a.state.row_sum == b.state.row_sum &&
           a.acc == b.acc;
  }
};

template <class Real>
constexpr Real kInfinite = std::numeric_limits<Real>::infinity();

template <class Real>
Row<Real> merged(Row<Real> a, const Row<Real>& b) {
  merge_state(a.state, a.acc.data(), b.state, b.acc.data(),
              static_cast<std::int64_t>(a.acc.size()));
  return a;
}

template <class Real>
Row<Real> empty_row(std::size_t channels) {
  return {{}, std::vector<Real>(channels, Real(0))};
}

/// One key: score s, weight 1, value v.
template <class Real>
Row<Real> one_key(Real score, std::vector<Real> value) {
  return {{score, Real(1)}, std::move(value)};
}

template <class Real>
struct Finished {
  std::vector<Real> out;
  Real lse = 0;
};

template <class Real>
Finished<Real> finished(Row<Real> row) {
  const Real lse =
      finish_state(row.state, row.acc.data(), static_cast<std::int64_t>(row.acc.size()));
  return {row.acc, lse};
}

template <class Real>
bool same_bits(const Finished<Real>& a, const Finished<Real>& b) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  bool same = std::bit_cast<Bits>(a.lse) == std::bit_cast<Bits>(b.lse);
  for (std::size_t c = 0; c < a.out.size(); ++c) {
    same = same && std::bit_cast<Bits>(a.out[c]) == std::bit_cast<Bits>(b.out[c]);
  }
  return same;
}

template <class Real>
Real draw_real(Real magnitude) {
  constexpr int kSteps = 1 << 20;
  const auto steps = rc::gen::resize(rc::kNominalSize, rc::gen::inRange(-kSteps, kSteps + 1));
  return static_cast<Real>(*steps) / Real(kSteps) * magnitude;
}

/// Scores from ties to gaps of thousands, empty rows among them, `channels` values each.
template <class Real>
Row<Real> draw_row(std::size_t channels) {
  if (*rc::gen::inRange(0, 6) == 0) return empty_row<Real>(channels);
  Row<Real> row = empty_row<Real>(channels);
  row.state.row_max = draw_real<Real>(*rc::gen::element<Real>(0, 1, 30, 100, 1000, 1e6));
  row.state.row_sum = 1 + std::abs(draw_real<Real>(50));
  for (Real& value : row.acc) value = draw_real<Real>(4) * row.state.row_sum;
  return row;
}

template <class Real>
class StateTest : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
struct RealNames {
  template <class Real>
  static std::string GetName(int) {
    return sizeof(Real) == 4 ? "f32" : "f64";
  }
};
TYPED_TEST_SUITE(StateTest, Reals, RealNames);

TYPED_TEST(StateTest, merge_is_commutative_bit_for_bit) {
  using Real = TypeParam;
  EXPECT_TRUE(rc::check([] {
    const auto a = draw_row<Real>(3);
    const auto b = draw_row<Real>(3);
    RC_ASSERT(merged(a, b) == merged(b, a));
    RC_ASSERT(same_bits(finished(merged(a, b)), finished(merged(b, a))));
  }));
}

TYPED_TEST(StateTest, merging_with_the_empty_state_on_either_side_changes_nothing) {
  using Real = TypeParam;
  EXPECT_TRUE(rc::check([] {
    const auto a = draw_row<Real>(3);
    RC_ASSERT(merged(a, empty_row<Real>(3)) == a);
    RC_ASSERT(merged(empty_row<Real>(3), a) == a);
  }));
}

TYPED_TEST(StateTest, two_empty_states_merge_to_the_empty_state) {
  using Real = TypeParam;
  const auto both = merged(empty_row<Real>(2), empty_row<Real>(2));
  EXPECT_EQ(both, empty_row<Real>(2));  // equality fails for NaN
}

/// The true sum over rows of contribution · exp(row_max - top), and what merging in any order may
/// miss of it. A rescaling by exp(x) costs |x| u for the rounded difference, 2u for exp (1 ulp) and
/// u for the product; the differences on the way to `top` add up to top - row_max. At most two
/// rescalings and two sums happen to each of three rows: |contribution| e^(-D) (D + 8) u.
struct TrueSum {
  long double value = 0;
  long double bound = 0;
};

template <class Real, class Part>
TrueSum true_sum(const std::vector<Row<Real>>& rows, long double top, const Part& part) {
  const long double u = std::numeric_limits<Real>::epsilon() / 2;
  const long double least = std::numeric_limits<Real>::denorm_min();
  TrueSum sum;
  for (const Row<Real>& row : rows) {
    if (row.state.row_max == -kInfinite<Real>) continue;
    const long double gap = top - row.state.row_max;
    const long double contribution = part(row);
    sum.value += contribution * std::exp(-gap);
    sum.bound += std::abs(contribution) * std::exp(-gap) * (gap + 8) * u * 1.01L +
                 (std::abs(contribution) + 1) * 4 * least;  // underflow in exp and products
  }
  return sum;
}

template <class Real>
void expect_within_bound(const std::vector<Row<Real>>& rows, const Row<Real>& result) {
  long double top = -kInfinite<long double>;
  for (const Row<Real>& row : rows) top = std::max(top, (long double){row.state.row_max});
  RC_ASSERT(result.state.row_max == top);
  const TrueSum sum = true_sum(rows, top, [](const Row<Real>& row) { return row.state.row_sum; });
  RC_ASSERT(std::abs(result.state.row_sum - sum.value) <= sum.bound);
  for (std::size_t c = 0; c < result.acc.size(); ++c) {
    const TrueSum acc = true_sum(rows, top, [c](const Row<Real>& row) { return row.acc[c]; });
    RC_ASSERT(std::abs(result.acc[c] - acc.value) <= acc.bound);
  }
}

TYPED_TEST(StateTest, merge_is_associative_within_the_rounding_of_its_rescalings) {
  using Real = TypeParam;
  EXPECT_TRUE(rc::check([] {
    const std::vector<Row<Real>> rows = {draw_row<Real>(2), draw_row<Real>(2), draw_row<Real>(2)};
    expect_within_bound(rows, merged(merged(rows[0], rows[1]), rows[2]));
    expect_within_bound(rows, merged(rows[0], merged(rows[1], rows[2])));
    expect_within_bound(rows, merged(merged(rows[0], rows[2]), rows[1]));
  }));
}

// lse + log(1 + exp(b - a)) overflows at gaps like these; the shifted form does not notice them.
TYPED_TEST(StateTest, a_row_far_below_another_adds_nothing_and_far_above_takes_over) {
  using Real = TypeParam;
  for (const Real gap : {Real(1000), Real(1e6), Real(1e30)}) {
    const auto low = one_key<Real>(-gap, {3, 4});
    const auto high = one_key<Real>(gap, {5, 6});
    EXPECT_EQ(merged(low, high), high);
    EXPECT_EQ(merged(high, low), high);
    EXPECT_EQ(finished(merged(low, high)).lse, gap);
  }
  const auto zero = one_key<Real>(0, {3, 4});
  EXPECT_EQ(merged(zero, one_key<Real>(-1000, {5, 6})), zero);
}

TYPED_TEST(StateTest, maxima_at_the_ends_of_the_range_give_no_nan) {
  using Real = TypeParam;
  constexpr Real kMost = std::numeric_limits<Real>::max();
  const auto low = one_key<Real>(-kMost, {1});
  const auto high = one_key<Real>(kMost, {2});
  EXPECT_EQ(merged(low, high), high);
  EXPECT_EQ(merged(low, low).state.row_sum, Real(2));
  EXPECT_EQ(merged(low, empty_row<Real>(1)), low);
}

TYPED_TEST(StateTest, nan_is_not_hidden_by_a_merge) {
  using Real = TypeParam;
  const auto nan = one_key<Real>(std::numeric_limits<Real>::quiet_NaN(), {1});
  const auto key = one_key<Real>(1, {1});
  for (const auto& row : {merged(nan, key), merged(key, nan), merged(nan, empty_row<Real>(1)),
                          merged(empty_row<Real>(1), nan)}) {
    EXPECT_TRUE(std::isnan(finished(row).lse));
    EXPECT_TRUE(std::isnan(finished(row).out[0]));
  }
}

/// Merges all rows in a random order along a random tree.
template <class Real>
Row<Real> merged_in_any_order(std::vector<Row<Real>> rows) {
  while (rows.size() > 1) {
    const auto left = *rc::gen::inRange<std::size_t>(0, rows.size());
    std::swap(rows[left], rows.back());
    const Row<Real> taken = rows.back();
    rows.pop_back();
    const auto right = *rc::gen::inRange<std::size_t>(0, rows.size());
    rows[right] = merged(rows[right], taken);
  }
  return rows[0];
}

// Equal scores make every rescaling exp(0) = 1, integers add exactly, and 2^k keys divide exactly.
TYPED_TEST(StateTest, equal_scores_and_integer_values_of_2k_keys_are_exact_in_any_merge_tree) {
  using Real = TypeParam;
  EXPECT_TRUE(rc::check([] {
    const int keys = 1 << *rc::gen::inRange(0, 7);
    const Real score = draw_real<Real>(200);
    std::vector<Row<Real>> rows = {empty_row<Real>(3), empty_row<Real>(3)};
    std::vector<Real> sums(3);
    for (int j = 0; j < keys; ++j) {
      std::vector<Real> value(3);
      for (Real& v : value) v = static_cast<Real>(*rc::gen::inRange(-1000, 1001));
      for (std::size_t c = 0; c < 3; ++c) sums[c] += value[c];
      rows.push_back(one_key(score, value));
    }
    const Finished<Real> result = finished(merged_in_any_order(rows));
    for (std::size_t c = 0; c < 3; ++c) RC_ASSERT(result.out[c] == sums[c] / Real(keys));
    RC_ASSERT(result.lse == score + std::log(static_cast<Real>(keys)));
  }));
}

/// The alternative of docs/decisions/0001-running-triple.md in its best form, guarded and shifted.
Finished<float> merged_pairs(Finished<float> a, const Finished<float>& b) {
  const float top = std::max(a.lse, b.lse);
  const float mine = std::exp(a.lse - top);
  const float theirs = std::exp(b.lse - top);
  for (std::size_t c = 0; c < a.out.size(); ++c) {
    a.out[c] = (a.out[c] * mine + b.out[c] * theirs) / (mine + theirs);
  }
  a.lse = top + std::log(mine + theirs);
  return a;
}

TEST(StateTest, merging_finished_pairs_instead_misses_most_exact_answers) {
  constexpr int kTrials = 1000;
  constexpr int kKeys = 64;
  std::mt19937 random(1);
  int inexact_pairs = 0;
  int inexact_triples = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Row<float> row = empty_row<float>(1);
    Finished<float> pair;
    float sum = 0;
    for (int j = 0; j < kKeys; ++j) {
      const auto value = static_cast<float>(random() % 2001) - 1000.0f;
      const auto key = one_key<float>(0.75f, {value});
      row = merged(row, key);
      pair = j == 0 ? finished(key) : merged_pairs(pair, finished(key));
      sum += value;
    }
    inexact_triples += finished(row).out[0] != sum / kKeys;
    inexact_pairs += pair.out[0] != sum / kKeys;
  }
  EXPECT_EQ(inexact_triples, 0);
  EXPECT_GT(inexact_pairs, kTrials / 2);
}

TEST(StateTest, published_pairwise_formulas_fail_where_the_triple_does_not) {
  const auto log1p_form = [](float a, float b) { return a + std::log(1.0f + std::exp(b - a)); };
  EXPECT_TRUE(std::isinf(log1p_form(0.0f, 100.0f)));
  EXPECT_TRUE(std::isnan(log1p_form(-kInfinite<float>, 5.0f)));
  const auto sigmoid_form = [](float a, float b) { return a + std::log1p(std::exp(-(a - b))); };
  EXPECT_TRUE(std::isnan(sigmoid_form(-kInfinite<float>, -kInfinite<float>)));
  EXPECT_EQ(finished(merged(one_key<float>(0, {1}), one_key<float>(100, {2}))).lse, 100.0f);
  EXPECT_EQ(finished(merged(empty_row<float>(1), one_key<float>(5, {2}))).lse, 5.0f);
}

TYPED_TEST(StateTest, an_empty_row_finishes_as_zero_and_minus_infinity) {
  using Real = TypeParam;
  const Finished<Real> result = finished(empty_row<Real>(3));
  EXPECT_EQ(result.out, (std::vector<Real>{0, 0, 0}));
  EXPECT_EQ(result.lse, -kInfinite<Real>);
}

TYPED_TEST(StateTest, a_single_key_finishes_as_its_value_and_its_score) {
  using Real = TypeParam;
  const Finished<Real> result = finished(one_key<Real>(Real(-7.25), {Real(0.1), -3}));
  EXPECT_EQ(result.out, (std::vector<Real>{Real(0.1), -3}));
  EXPECT_EQ(result.lse, Real(-7.25));
}

TYPED_TEST(StateTest, rescaling_is_total) {
  using Real = TypeParam;
  constexpr Real kEmpty = -kInfinite<Real>;
  EXPECT_EQ(rescale_factor(kEmpty, kEmpty), Real(0));
  EXPECT_EQ(rescale_factor(kEmpty, Real(5)), Real(0));
  EXPECT_EQ(rescale_factor(Real(5), Real(5)), Real(1));
  EXPECT_EQ(rescale_factor(Real(-3000), Real(3000)), Real(0));
  EXPECT_TRUE(std::isnan(rescale_factor(std::numeric_limits<Real>::quiet_NaN(), Real(1))));
}

}  // namespace
}  // namespace ringlab
