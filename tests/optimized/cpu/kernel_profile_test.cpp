// What the kernels promise, measured with inputs that make one kind of error as large as it can be:
// no error may be larger than is promised, and the promise may not be several times too large.
#include "optimized/cpu/kernel_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/few_queries.h"
#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/trial.h"

namespace ringlab::cpu {
namespace {

/// A promise that is further above what is measured promises too little.
constexpr double kMostSlack = 4;

template <class Element>
class KernelProfile : public testing::Test {
 protected:
  using Real = Accumulator<Element>;

  void TearDown() override { use_vectors(available_vectors().front()); }

  struct Row {
    SoftmaxState<Real> state;
    Real acc = 0;
  };
  /// A query (channels) against keys (n, channels) with values (n, 1); scale 1. It is asked so many
  /// times: more than few are a tile's.
  static Row attend(const std::vector<Element>& q, const std::vector<Element>& k,
                    const std::vector<Element>& v, std::int64_t times = kMostFewQueries + 1) {
    const auto keys = static_cast<std::int64_t>(v.size());
    const auto channels = static_cast<std::int64_t>(q.size());
    const Positions queries = Positions::all(times), all = Positions::all(keys);
    const Mask mask = parse_mask("full").bind(times, keys);
    std::vector<Element> qs;
    for (std::int64_t i = 0; i < times; ++i) qs.insert(qs.end(), q.begin(), q.end());
    std::vector<SoftmaxState<Real>> states(static_cast<std::size_t>(times));
    std::vector<Real> accs(static_cast<std::size_t>(times));
    forward_block(Block<Element>{.mask = mask,
                                 .queries = queries,
                                 .keys = all,
                                 .scale = 1,
                                 .tiles = {.queries = kTileQueries, .keys = kTileKeys},
                                 .q = dense_view(qs.data(), {1, 1, times, channels}),
                                 .k = dense_view(k.data(), {1, 1, keys, channels}),
                                 .v = dense_view(v.data(), {1, 1, keys, 1})},
                  states.data(), accs.data());
    return {states.back(), accs.back()};
  }

  static NumericsProfile promised() { return kernel_profile(dtype_of<Element>, 1); }
  static Element element(double x) { return static_cast<Element>(x); }
  /// As many numbers, the first `first`, the others `rest`.
  static std::vector<Element> lone(std::int64_t count, double first, double rest) {
    std::vector<Element> values(static_cast<std::size_t>(count), element(rest));
    values.front() = element(first);
    return values;
  }

  /// A little less than half a unit in the last place of 1, times 2^10, in few digits: added to
  /// 2^10 it is lost, and the more of them, the more is lost.
  static double lost() { return promised().u_accumulate * 0x1.f8p9; }
  static constexpr double kBase = 0x1p10;
  static constexpr std::int64_t kTerms = 100;

  void expect_within(double measured, double promise, const std::string& what) {
    EXPECT_LE(measured, promise) << what << ", " << vectors_in_use();
    // Matrices sum the even and the odd terms apart: half of them are not lost on the other half.
    const double slack = vectors_in_use() == "avx512_amx" ? 2 * kMostSlack : kMostSlack;
    EXPECT_GE(measured * slack, promise)
        << what << ", " << vectors_in_use() << ": nothing comes near what is promised";
  }
};
using Elements = testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(KernelProfile, Elements);

/// Two keys, one of weight 1 and value 0, and one of value 1: acc is the weight of that.
TYPED_TEST(KernelProfile, has_the_error_of_a_weight) {
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    const NumericsProfile promised = this->promised();
    const bool rounded = promised.u_probability > 0;
    double worst = 0, worst_of_few = 0;
    for (int i = 1; i <= 20000; ++i) {
      const TypeParam gap = this->element(-i * 0x1.9p-11);
      const auto x =
          static_cast<Accumulator<TypeParam>>(gap) * in_base_2(Accumulator<TypeParam>(1));
      if (x < -16) break;
      const long double exact = exp2l(static_cast<long double>(x));
      const auto error = [&](std::int64_t times) {
        const auto row = this->attend({this->element(1)}, {this->element(0), gap},
                                      {this->element(0), this->element(1)}, times);
        return static_cast<double>(std::abs(row.acc / exact - 1));
      };
      worst = std::max(worst, error(kMostFewQueries + 1));
      worst_of_few = std::max(worst_of_few, error(1));
    }
    EXPECT_LE(worst_of_few, promised.exp_error) << vectors;
    this->expect_within(worst, rounded ? promised.u_probability : promised.exp_error, "weight");
  }
}

/// Equal scores, so that weights are 1: 2^10 and then numbers that are lost on the way.
TYPED_TEST(KernelProfile, has_the_error_of_a_sum_over_keys) {
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    const auto row = this->attend({this->element(0)}, this->lone(this->kTerms, 0, 0),
                                  this->lone(this->kTerms, this->kBase, this->lost()));
    const double exact = this->kBase + (this->kTerms - 1) * this->lost();
    const double magnitude = exact;  // all terms are positive
    this->expect_within(std::abs(row.acc - exact) / magnitude,
                        gamma_bound(this->kTerms, this->promised().u_accumulate), "sum over keys");
  }
}

/// The same in a score, which is row_max where there is one key: in base 2, with log2 e as the
/// scale, rounded once more.
TYPED_TEST(KernelProfile, has_the_error_of_a_score) {
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    const NumericsProfile promised = this->promised();
    const auto row = this->attend(
        std::vector<TypeParam>(static_cast<std::size_t>(this->kTerms), this->element(1)),
        this->lone(this->kTerms, this->kBase, this->lost()), {this->element(1)});
    const long double exact =
        (this->kBase + (this->kTerms - 1) * this->lost()) * std::numbers::log2e_v<long double>;
    this->expect_within(static_cast<double>(std::abs(row.state.row_max / exact - 1)),
                        gamma_bound(this->kTerms, promised.u_accumulate) + 2 * promised.u_work,
                        "score");
  }
}

/// A weight of 1 and then weights that are lost: the row sum stays 1.
TYPED_TEST(KernelProfile, has_the_error_of_a_row_sum) {
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    const NumericsProfile promised = this->promised();
    // The last score below half a unit in the last place of 1 that the elements have.
    const double unit = promised.u_accumulate;
    const TypeParam low = this->element(std::log(unit * 0.75));
    const auto row =
        this->attend({this->element(1)}, this->lone(this->kTerms, 0, static_cast<double>(low)),
                     this->lone(this->kTerms, 1, 1));
    const double exact = 1 + (this->kTerms - 1) * std::exp(static_cast<double>(low));
    this->expect_within(std::abs(static_cast<double>(row.state.row_sum) - exact) / exact,
                        gamma_bound(this->kTerms, unit), "row sum");
  }
}

}  // namespace
}  // namespace ringlab::cpu
