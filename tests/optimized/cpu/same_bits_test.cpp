// Changes that change no bit of the results, whatever the numbers are; the contract of block
// kernels compares them with the exact reference, for threads and tiles of all sizes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/trial.h"
#include "tests/repetitions.h"

namespace ringlab::cpu {
namespace {

/// For the backward pass: dout like q, delta like a row of it, lse from the forward pass.
template <class Element>
struct BackwardInputs {
  std::vector<Element> dout;
  std::vector<Accumulator<Element>> lse, delta;
};

/// Maxima, sums, accs, dq, dk, dv.
template <class Element>
using AllNumbers = std::array<std::vector<Accumulator<Element>>, 6>;

template <class Element>
BackwardInputs<Element> backward_inputs(const Trial<Element>& trial) {
  using Real = Accumulator<Element>;
  BackwardInputs<Element> g;
  for (std::int64_t i = 0; i < trial.rows() * trial.v_extents.channels; ++i) {
    g.dout.push_back(trial.q[static_cast<std::size_t>(i) % trial.q.size()]);
  }
  std::vector<SoftmaxState<Real>> states(static_cast<std::size_t>(trial.rows()));
  std::vector<Real> accs(g.dout.size());
  forward_block(trial.block(), states.data(), accs.data());
  for (std::size_t row = 0; row < states.size(); ++row) {
    const SoftmaxState<Real> state = natural_state(states[row]);
    g.lse.push_back(state.row_max + std::log(state.row_sum));
    g.delta.push_back(static_cast<Real>(trial.q[row % trial.q.size()]));
  }
  return g;
}

/// Both passes over the block twice, so that the second time there is a state to go on from.
template <class Element>
AllNumbers<Element> numbers(const Trial<Element>& trial, const BackwardInputs<Element>& g) {
  using Real = Accumulator<Element>;
  std::vector<SoftmaxState<Real>> states(static_cast<std::size_t>(trial.rows()));
  AllNumbers<Element> all;
  auto& [maxima, sums, accs, dq, dk, dv] = all;
  accs.resize(g.dout.size());
  dq.resize(trial.q.size());
  dk.resize(trial.k.size());
  dv.resize(trial.v.size());
  Extents dout = trial.q_extents;
  dout.channels = trial.v_extents.channels;
  for (int time = 0; time < 2; ++time) {
    forward_block(trial.block(), states.data(), accs.data());
    backward_block(
        trial.block(),
        QueryGradients<Element>{dense_view(g.dout.data(), dout), g.lse.data(), g.delta.data()},
        BlockGradients<Element>{dq.data(), dk.data(), dv.data()});
  }
  for (const SoftmaxState<Real>& state : states) {
    maxima.push_back(state.row_max);
    sums.push_back(state.row_sum);
  }
  return all;
}

/// Equal, or no number in both: all, or the first `count`.
template <class All>
bool same(const All& a, const All& b, std::size_t count = std::tuple_size_v<All>) {
  for (std::size_t which = 0; which < count; ++which) {
    if (a[which].size() != b[which].size()) return false;
    for (std::size_t i = 0; i < a[which].size(); ++i) {
      const auto x = a[which][i], y = b[which][i];
      if (x != y && !(std::isnan(x) && std::isnan(y))) return false;
    }
  }
  return true;
}

template <class Element>
class SameBits : public testing::Test {
 protected:
  void TearDown() override { use_vectors(available_vectors().front()); }
};
using Elements = testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(SameBits, Elements);

/// Random trials with rows and keys.
template <class Element>
std::vector<Trial<Element>> trials(unsigned count = repetitions(100u)) {
  std::vector<Trial<Element>> some;
  for (unsigned seed = 0; seed < count; ++seed) {
    Trial<Element> trial = any_trial<Element>(seed);
    if (!trial.queries.empty() && !trial.keys.empty()) some.push_back(std::move(trial));
  }
  return some;
}

// Wide rows of some lengths lie apart (wide_rows-inl.h).
TYPED_TEST(SameBits, where_channels_of_zeros_are_added) {
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    int number = 0;
    for (Trial<TypeParam>& trial : trials<TypeParam>(repetitions(50u))) {
      const std::int64_t head_dim = trial.q_extents.channels, v_dim = trial.v_extents.channels;
      const bool is_spoilt = number++ % 3 == 0;  // channels of zeros have gradients of NaN then
      if (is_spoilt) {
        trial.v.back() = static_cast<TypeParam>(std::numeric_limits<double>::infinity());
      }
      const BackwardInputs<TypeParam> before = backward_inputs(trial);
      const AllNumbers<TypeParam> narrow = numbers(trial, before);
      for (const std::int64_t channels : {128, 131}) {
        BackwardInputs<TypeParam> more = before;
        more.dout = wider(before.dout, v_dim, channels);
        AllNumbers<TypeParam> due = narrow;
        for (const int of_v : {2, 5}) due[of_v] = wider(narrow[of_v], v_dim, channels);
        for (const int of_k : {3, 4}) due[of_k] = wider(narrow[of_k], head_dim, channels);
        EXPECT_TRUE(same(numbers(wider(trial, channels), more), due, is_spoilt ? 3 : 6))
            << vectors << ", trial " << number << ", " << channels << " channels";
      }
    }
  }
}

TYPED_TEST(SameBits, far_along_a_sequence) {
  for (Trial<TypeParam>& trial : trials<TypeParam>()) {
    trial.modifiers.dropout = 0;
    const auto before = backward_inputs(trial);
    const auto near = numbers(trial, before);
    for (const std::int64_t tokens : kFarPositions) {
      EXPECT_TRUE(same(numbers(later_in_the_sequence(trial, tokens), before), near)) << tokens;
    }
  }
}

/// Lanes are queries: how many there are in a vector changes no sum. (The scalar build has no fused
/// multiply-add.)
TYPED_TEST(SameBits, on_avx2_and_avx512) {
  if (!available_vectors().front().starts_with("avx512")) GTEST_SKIP() << "no AVX-512 here";
  for (const Trial<TypeParam>& trial : trials<TypeParam>()) {
    use_vectors("avx512");
    const auto before = backward_inputs(trial);
    const auto wide = numbers(trial, before);
    use_vectors("avx2");
    EXPECT_TRUE(same(numbers(trial, before), wide));
  }
}

/// Enough keys for several slices, which add to the same dq.
TYPED_TEST(SameBits, for_any_number_of_threads_when_keys_come_in_slices) {
  for (const char* mask : {"full", "causal"}) {
    constexpr std::int64_t kQueries = 150, kKeys = 3500;
    Trial<TypeParam> trial{.mask = parse_mask(mask).bind(kQueries, kKeys),
                           .queries = Positions::all(kQueries),
                           .keys = Positions::all(kKeys)};
    trial.q_extents = {1, 2, kQueries, 3};
    trial.k_extents = trial.v_extents = {1, 1, kKeys, 3};
    trial.q = normal_values<TypeParam>(trial.q_extents.size(), 1);
    trial.k = normal_values<TypeParam>(trial.k_extents.size(), 2);
    trial.v = normal_values<TypeParam>(trial.v_extents.size(), 3);
    trial.tiles = {.queries = 48, .keys = 100};
    const auto before = backward_inputs(trial);
    const auto alone = numbers(trial, before);
    for (const int threads : {2, 3, 7}) {
      trial.threads = threads;
      EXPECT_TRUE(same(numbers(trial, before), alone)) << mask << ", " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace ringlab::cpu
