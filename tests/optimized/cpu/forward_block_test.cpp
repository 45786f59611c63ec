// Few queries, slices of keys and maxima that rise, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "optimized/cpu/few_queries.h"
#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/trial.h"
#include "tests/repetitions.h"

namespace ringlab::cpu {
namespace {

template <class Real>
struct Answer {
  std::vector<Real> maxima, sums, accs;
};

/// The block twice, so that the second time there is a state to go on from.
template <class Element>
Answer<Accumulator<Element>> run(const Trial<Element>& trial) {
  using Real = Accumulator<Element>;
  std::vector<SoftmaxState<Real>> states(static_cast<std::size_t>(trial.rows()));
  Answer<Real> answer;
  answer.accs.resize(static_cast<std::size_t>(trial.rows() * trial.v_extents.channels));
  for (int time = 0; time < 2; ++time) {
    forward_block(trial.block(), states.data(), answer.accs.data());
  }
  for (const SoftmaxState<Real>& state : states) {
    answer.maxima.push_back(state.row_max);
    answer.sums.push_back(state.row_sum);
  }
  return answer;
}

template <class Element>
class ForwardBlock : public testing::Test {
 protected:
  void TearDown() override { use_vectors(available_vectors().front()); }
};
using Elements = testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(ForwardBlock, Elements);

constexpr auto kForwardTrials = repetitions<unsigned>(100);

/// Rows first … first+count-1 of a trial's queries, of all heads.
template <class Element>
Trial<Element> some_queries(const Trial<Element>& trial, std::int64_t first, std::int64_t count) {
  Trial<Element> some = trial;
  const std::vector<std::int64_t> all = trial.queries.to_list();
  some.queries = Positions::from_list({all.begin() + first, all.begin() + first + count});
  some.q_extents.tokens = count;
  some.q.clear();
  const Extents& q = trial.q_extents;
  for (std::int64_t head = 0; head < q.batch * q.heads; ++head) {
    const auto begin = trial.q.begin() + (head * q.tokens + first) * q.channels;
    some.q.insert(some.q.end(), begin, begin + count * q.channels);
  }
  return some;
}

/// Whether tiles multiply pairs of bf16, which few queries do not.
template <class Element>
bool tiles_multiply_pairs() {
  return std::is_same_v<Element, BFloat16> && bf16_products_in_use();
}

// Few queries have a kernel of their own, with lanes along keys (few_queries-inl.h).
TYPED_TEST(ForwardBlock, has_the_same_bits_for_a_few_queries_as_for_many) {
  constexpr std::int64_t kFew = kMostFewQueries;
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    if (tiles_multiply_pairs<TypeParam>()) continue;
    for (unsigned seed = 0; seed < kForwardTrials; ++seed) {
      Trial<TypeParam> trial = any_trial<TypeParam>(seed);
      // All keys in a slice, and several blocks of them.
      trial.tiles.keys = std::max<std::int64_t>(trial.tiles.keys, (trial.keys.size() + 7) / 8);
      const Extents& q = trial.q_extents;
      const auto whole = run(trial);
      for (std::int64_t first = 0; first < q.tokens; first += kFew) {
        const std::int64_t count = std::min(kFew, q.tokens - first);
        Trial<TypeParam> few = some_queries(trial, first, count);
        few.threads = 1 + static_cast<int>(first % 3);
        const auto part = run(few);
        const std::int64_t v_dim = trial.v_extents.channels;
        for (std::int64_t row = 0; row < few.rows(); ++row) {
          const std::int64_t there = row / count * q.tokens + first + row % count;
          const auto at = static_cast<std::size_t>(row), as = static_cast<std::size_t>(there);
          EXPECT_EQ(part.maxima[at], whole.maxima[as]) << vectors << ", seed " << seed;
          EXPECT_EQ(part.sums[at], whole.sums[as]) << vectors << ", seed " << seed;
          for (std::int64_t c = 0; c < v_dim; ++c) {
            EXPECT_EQ(part.accs[static_cast<std::size_t>(row * v_dim + c)],
                      whole.accs[static_cast<std::size_t>(there * v_dim + c)])
                << vectors << ", seed " << seed;
          }
        }
      }
    }
  }
}

/// `count` queries of ones at the end of 3500 positions, two heads, against 3000 of the keys, in two
/// runs. Scores are whole powers and rise from thousand to thousand, values are 0 … 3: every sum is
/// exact in every order.
template <class Element>
Trial<Element> many_keys(std::int64_t count) {
  constexpr std::int64_t kKeys = 3000, kAll = 3500, kChannels = 3;
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < kKeys; ++j) keys.push_back(j < 1700 ? j : j + 500);
  std::vector<std::int64_t> queries;
  for (std::int64_t i = 0; i < count; ++i) queries.push_back(i == 0 ? 2300 : kAll - count + i);
  Trial<Element> trial{.mask = parse_mask("causal").bind(kAll, kAll),
                       .queries = Positions::from_list(queries),
                       .keys = Positions::from_list(keys),
                       .q_extents = {1, 2, count, 1},
                       .k_extents = {1, 1, kKeys, 1},
                       .v_extents = {1, 1, kKeys, kChannels},
                       .tiles = {.queries = 32, .keys = 50}};
  trial.q.assign(static_cast<std::size_t>(2 * count), static_cast<Element>(1.0));
  for (std::int64_t j = 0; j < kKeys; ++j) {
    trial.k.push_back(static_cast<Element>(static_cast<double>(j / 1000 - j % 4)));
    for (std::int64_t c = 0; c < kChannels; ++c) {
      trial.v.push_back(static_cast<Element>(static_cast<double>((j + c) % 4)));
    }
  }
  return trial;
}

TYPED_TEST(ForwardBlock, merges_what_a_few_queries_have_of_slices_of_keys) {
  const auto run_in_base_2 = [](const Trial<TypeParam>& trial) {
    Block<TypeParam> block = trial.block();
    block.scale = std::numbers::ln2;
    std::vector<SoftmaxState<Accumulator<TypeParam>>> states(trial.q.size(),
                                                             {.row_max = 1, .row_sum = 4});
    std::vector<Accumulator<TypeParam>> accs(trial.q.size() * 3, 8);
    forward_block(block, states.data(), accs.data());
    for (const auto& state : states) accs.insert(accs.end(), {state.row_max, state.row_sum});
    return accs;
  };
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    constexpr std::int64_t kMany = kMostFewQueries + 2;
    const Trial<TypeParam> many = many_keys<TypeParam>(kMany);
    const auto whole = run_in_base_2(many);
    for (int threads = 1; threads <= 5; ++threads) {
      Trial<TypeParam> few = some_queries(many, 0, 2);
      few.threads = threads;
      const auto part = run_in_base_2(few);
      for (std::size_t row = 0; row < 4; ++row) {
        const std::size_t there = row / 2 * kMany + row % 2;
        for (std::size_t c = 0; c < 3; ++c) {
          EXPECT_EQ(part[row * 3 + c], whole[there * 3 + c]) << vectors << ", row " << row;
        }
        for (std::size_t i = 0; i < 2; ++i) {
          EXPECT_EQ(part[4 * 3 + row * 2 + i], whole[2 * kMany * 3 + there * 2 + i])
              << vectors << ", row " << row;
        }
      }
    }
  }
}

/// One key of ones that 50 queries see, row i with the score i % 4 in base 2; values are 0, 1, 2, …
template <class Element>
Trial<Element> whole_scores(std::int64_t v_dim) {
  constexpr std::int64_t kRows = 50;
  Trial<Element> trial{.mask = parse_mask("full").bind(kRows, 1),
                       .queries = Positions::all(kRows),
                       .keys = Positions::all(1),
                       .q_extents = {1, 1, kRows, 1},
                       .k_extents = {1, 1, 1, 1},
                       .v_extents = {1, 1, 1, v_dim},
                       .k = {static_cast<Element>(1.0)}};
  for (int i = 0; i < kRows; ++i) trial.q.push_back(static_cast<Element>(i % 4 * 1.0));
  for (int c = 0; c < v_dim; ++c) trial.v.push_back(static_cast<Element>(c * 1.0));
  return trial;
}

/// Every number is exact: maxima are 1 before, so that half of the rows are halved or quartered.
TYPED_TEST(ForwardBlock, a_maximum_that_rises_scales_every_channel_of_its_row_and_of_no_other) {
  using Real = Accumulator<TypeParam>;
  for (const std::string& vectors : available_vectors()) {
    use_vectors(vectors);
    for (const std::int64_t v_dim : {1, 2, 3, 7, 8, 9, 15, 16, 17}) {
      const Trial<TypeParam> trial = whole_scores<TypeParam>(v_dim);
      Block<TypeParam> block = trial.block();
      block.scale = std::numbers::ln2;
      std::vector<SoftmaxState<Real>> states(trial.q.size(), {.row_max = 1, .row_sum = 4});
      std::vector<Real> accs(trial.q.size() * trial.v.size(), 8);
      forward_block(block, states.data(), accs.data());
      for (std::size_t i = 0; i < trial.q.size(); ++i) {
        const int score = static_cast<int>(i % 4), top = std::max(1, score);
        const Real keep = std::ldexp(Real(1), 1 - top), weight = std::ldexp(Real(1), score - top);
        EXPECT_EQ(states[i].row_max, static_cast<Real>(top)) << vectors << ", row " << i;
        EXPECT_EQ(states[i].row_sum, 4 * keep + weight) << vectors << ", row " << i;
        for (std::size_t c = 0; c < trial.v.size(); ++c) {
          EXPECT_EQ(accs[i * trial.v.size() + c], 8 * keep + weight * static_cast<Real>(c))
              << vectors << ", row " << i << ", channel " << c << " of " << v_dim;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ringlab::cpu
