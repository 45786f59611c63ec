// What must hold bit for bit of the backward kernel; the tests of the engine compare its numbers
// with the exact reference.
#include <gtest/gtest.h>

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

template <class Element>
struct Gradients {
  using Real = Accumulator<Element>;
  std::vector<Element> dout;
  std::vector<Real> lse, delta, dq, dk, dv;
  friend bool operator==(const Gradients& a, const Gradients& b) {
    return a.dq == b.dq && a.dk == b.dk && a.dv == b.dv;
  }
};

/// What the backward pass is given: dout like q, delta like a row of it, lse from the forward pass.
template <class Element>
Gradients<Element> given(const Trial<Element>& trial) {
  using Real = Accumulator<Element>;
  Gradients<Element> g;
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
  g.dq.resize(trial.q.size());
  g.dk.resize(trial.k.size());
  g.dv.resize(trial.v.size());
  return g;
}

template <class Element>
Gradients<Element> run(const Trial<Element>& trial, Gradients<Element> g) {
  Extents dout = trial.q_extents;
  dout.channels = trial.v_extents.channels;
  for (int time = 0; time < 2; ++time) {
    backward_block(
        trial.block(),
        QueryGradients<Element>{dense_view(static_cast<const Element*>(g.dout.data()), dout),
                                g.lse.data(), g.delta.data()},
        BlockGradients<Element>{g.dq.data(), g.dk.data(), g.dv.data()});
  }
  return g;
}

template <class Element>
class BackwardBlock : public testing::Test {
 protected:
  void TearDown() override { use_vectors(available_vectors().front()); }
};
using Elements = testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(BackwardBlock, Elements);

constexpr auto kTrials = repetitions<unsigned>(50);

/// Random trials with rows and keys.
template <class Element>
std::vector<Trial<Element>> trials() {
  std::vector<Trial<Element>> some;
  for (unsigned seed = 0; seed < kTrials; ++seed) {
    Trial<Element> trial = any_trial<Element>(seed);
    if (!trial.queries.empty() && !trial.keys.empty()) some.push_back(std::move(trial));
  }
  return some;
}

// Wide rows of some lengths lie apart (wide_rows-inl.h).
TYPED_TEST(BackwardBlock, has_the_same_bits_where_channels_of_zeros_are_added) {
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    for (const Trial<TypeParam>& trial : trials<TypeParam>()) {
      const std::int64_t head_dim = trial.q_extents.channels, v_dim = trial.v_extents.channels;
      const auto before = given(trial);
      const auto narrow = run(trial, before);
      for (const std::int64_t channels : {128, 131}) {
        Gradients<TypeParam> more = before;
        more.dout = wider(before.dout, v_dim, channels);
        more.dq = wider(before.dq, head_dim, channels);
        more.dk = wider(before.dk, head_dim, channels);
        more.dv = wider(before.dv, v_dim, channels);
        const auto wide = run(wider(trial, channels), more);
        EXPECT_EQ(wide.dq, wider(narrow.dq, head_dim, channels)) << vectors;
        EXPECT_EQ(wide.dk, wider(narrow.dk, head_dim, channels)) << vectors;
        EXPECT_EQ(wide.dv, wider(narrow.dv, v_dim, channels)) << vectors;
      }
    }
  }
}

TYPED_TEST(BackwardBlock, has_the_same_bits_far_along_a_sequence) {
  for (Trial<TypeParam>& trial : trials<TypeParam>()) {
    trial.modifiers.dropout = 0;
    const auto before = given(trial);
    const auto gradients = run(trial, before);
    for (const std::int64_t tokens : kFarPositions) {
      EXPECT_TRUE(run(later_in_the_sequence(trial, tokens), before) == gradients) << tokens;
    }
  }
}

TYPED_TEST(BackwardBlock, has_the_same_bits_for_any_number_of_threads_and_queries_in_a_tile) {
  for (Trial<TypeParam>& trial : trials<TypeParam>()) {
    const auto before = given(trial);
    const auto alone = run(trial, before);
    for (const int threads : {2, 5}) {
      trial.threads = threads;
      EXPECT_EQ(run(trial, before), alone);
    }
    for (const std::int64_t queries : {1, 48, 1000}) {
      trial.tiles.queries = queries;
      EXPECT_EQ(run(trial, before), alone) << queries << " queries";
    }
  }
}

/// Enough keys for several slices, which add to the same dq.
TYPED_TEST(BackwardBlock, has_the_same_bits_for_any_number_of_threads_when_keys_come_in_slices) {
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
    const auto before = given(trial);
    const auto alone = run(trial, before);
    for (const int threads : {2, 3, 7}) {
      trial.threads = threads;
      EXPECT_EQ(run(trial, before), alone) << mask << ", " << threads << " threads";
    }
  }
}

TYPED_TEST(BackwardBlock, has_the_same_bits_on_avx2_and_avx512) {
  if (!available_vectors().front().starts_with("avx512")) GTEST_SKIP() << "no AVX-512 here";
  for (const Trial<TypeParam>& trial : trials<TypeParam>()) {
    use_vectors("avx512");
    const auto before = given(trial);
    const auto wide = run(trial, before);
    use_vectors("avx2");
    EXPECT_EQ(run(trial, before), wide);
  }
}

/// One key and value is NaN: queries that do not see it have the same dq, and the keys of the same
/// head keep the dk and dv that they get from queries that do not see it.
TYPED_TEST(BackwardBlock, does_not_look_at_keys_and_values_that_a_query_does_not_see) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    unsigned seed = 0;
    for (Trial<TypeParam>& trial : trials<TypeParam>()) {
      const auto before = given(trial);
      const auto clean = run(trial, before);
      const std::int64_t key = ++seed % trial.keys.size();
      const auto poison = [&](std::vector<TypeParam>& values, std::int64_t channels) {
        for (std::int64_t c = 0; c < channels; ++c) {
          values[static_cast<std::size_t>(key * channels + c)] = static_cast<TypeParam>(nan);
        }
      };
      const std::int64_t d = trial.q_extents.channels;
      poison(trial.k, d);
      poison(trial.v, trial.v_extents.channels);
      const auto poisoned = run(trial, before);
      const std::int64_t group = trial.q_extents.heads / trial.k_extents.heads;
      for (std::int64_t row = 0; row < trial.rows(); ++row) {
        const bool first_head = row / trial.q_extents.tokens < group;
        const bool seen = first_head && sees(trial, row % trial.q_extents.tokens, key);
        for (std::int64_t i = row * d; i < (row + 1) * d; ++i) {
          const auto at = static_cast<std::size_t>(i);
          if (seen) {
            EXPECT_TRUE(std::isnan(poisoned.dq[at])) << vectors << ": a visible NaN must show";
          } else {
            EXPECT_EQ(poisoned.dq[at], clean.dq[at]) << vectors;
          }
        }
      }
    }
  }
}

/// One row of dout and q is NaN: keys that it does not see have the same dk and dv.
TYPED_TEST(BackwardBlock, does_not_bring_a_query_to_keys_that_it_does_not_see) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    unsigned seed = 0;
    for (Trial<TypeParam>& trial : trials<TypeParam>()) {
      auto before = given(trial);
      const auto clean = run(trial, before);
      const std::int64_t query = ++seed % trial.queries.size(), d = trial.q_extents.channels;
      const std::int64_t dv = trial.v_extents.channels;
      for (std::int64_t c = 0; c < d; ++c) {
        trial.q[static_cast<std::size_t>(query * d + c)] = static_cast<TypeParam>(nan);
      }
      for (std::int64_t c = 0; c < dv; ++c) {
        before.dout[static_cast<std::size_t>(query * dv + c)] = static_cast<TypeParam>(nan);
      }
      before.lse[static_cast<std::size_t>(query)] = static_cast<Accumulator<TypeParam>>(nan);
      before.delta[static_cast<std::size_t>(query)] = static_cast<Accumulator<TypeParam>>(nan);
      const auto poisoned = run(trial, before);
      for (std::int64_t key = 0; key < trial.keys.size(); ++key) {
        if (sees(trial, query, key)) continue;
        for (std::int64_t c = 0; c < d; ++c) {
          const auto at = static_cast<std::size_t>(key * d + c);
          EXPECT_EQ(poisoned.dk[at], clean.dk[at]) << vectors;
        }
        for (std::int64_t c = 0; c < dv; ++c) {
          const auto at = static_cast<std::size_t>(key * dv + c);
          EXPECT_EQ(poisoned.dv[at], clean.dv[at]) << vectors;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ringlab::cpu
