// The generator behind dropout: published answers, and the same from vectors on every target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/optimized/cpu/dropout_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "optimized/cpu/modifiers/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// Columns of words for `count` queries, a multiple of 16.
void words_in_lanes(const PhiloxCall& call, const std::uint32_t* queries, std::int64_t count,
                    std::uint32_t* words) {
  const AlignedArray<std::uint32_t> lanes = aligned_array<std::uint32_t>(count);
  const AlignedArray<std::uint32_t> found = aligned_array<std::uint32_t>(4 * count);
  std::copy(queries, queries + count, lanes.get());
  fill_words(call, lanes.get(), count, found.get());
  std::copy(found.get(), found.get() + 4 * count, words);
}

/// What becomes of weights of 1 of each query with each of the keys: (keys.count, queries).
template <class Real>
void drop_ones(const Modifiers& modifiers, std::int64_t batch, std::int64_t head,
               const std::vector<std::int64_t>& queries, const PositionRun& keys,
               std::vector<Real>& out) {
  const std::int64_t width = tile_width<Real>(), all = std::ssize(queries);
  const AlignedArray<Real> weights = aligned_array<Real>(keys.count * width);
  DropoutLanes<Real> dropout(modifiers);
  for (std::int64_t first = 0; first < all; first += width) {
    const std::int64_t count = std::min(width, all - first);
    std::fill(weights.get(), weights.get() + keys.count * width, Real(1));
    dropout.load(batch, head, queries.data() + first, count);
    dropout.drop(keys, weights.get());
    for (std::int64_t j = 0; j < keys.count; ++j) {
      for (std::int64_t lane = 0; lane < count; ++lane) {
        out[static_cast<std::size_t>(j * all + first + lane)] = weights.get()[j * width + lane];
      }
    }
  }
}
void drop_floats(const Modifiers& modifiers, std::int64_t batch, std::int64_t head,
                 const std::vector<std::int64_t>& queries, const PositionRun& keys,
                 std::vector<float>& out) {
  drop_ones(modifiers, batch, head, queries, keys, out);
}
void drop_doubles(const Modifiers& modifiers, std::int64_t batch, std::int64_t head,
                  const std::vector<std::int64_t>& queries, const PositionRun& keys,
                  std::vector<double>& out) {
  drop_ones(modifiers, batch, head, queries, keys, out);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <random>

#include "optimized/cpu/vectors.h"
#include "tests/optimized/cpu/on_vectors.h"
#include "tests/repetitions.h"

namespace ringlab::cpu {
HWY_EXPORT(words_in_lanes);
HWY_EXPORT(drop_floats);
HWY_EXPORT(drop_doubles);
namespace {

class DropoutWords : public OnVectors {};

struct KnownAnswer {
  Philox::Words counter;
  std::uint64_t seed;
  Philox::Words answer;
};
// Random123's kat_vectors, philox 4x32 with 10 rounds: zeros, ones, digits of pi.
constexpr KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     0xffffffffffffffff,
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     0x299f31d0a4093822,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Philox, gives_the_published_answers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    EXPECT_EQ(random_words(known.counter, known.seed), known.answer);
  }
}

TEST_P(DropoutWords, are_the_published_ones_and_those_of_one_call_at_a_time) {
  std::mt19937 random(1);
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  constexpr std::int64_t kQueries = 48;
  for (std::size_t trial = 0; trial < repetitions<std::size_t>(200); ++trial) {
    KnownAnswer known{{word(), word(), word(), word()}, std::uint64_t{word()} << 32 | word(), {}};
    if (trial < std::size(kKnownAnswers)) known = kKnownAnswers[trial];
    std::vector<std::uint32_t> queries(kQueries), words(4 * kQueries);
    std::ranges::generate(queries, word);
    queries[trial % kQueries] = known.counter[1];
    HWY_DYNAMIC_DISPATCH(words_in_lanes)
    ({known.seed, known.counter[0], known.counter[2], known.counter[3]}, queries.data(), kQueries,
     words.data());
    for (std::size_t i = 0; i < kQueries; ++i) {
      const Philox::Words found = {words[i], words[kQueries + i], words[2 * kQueries + i],
                                   words[3 * kQueries + i]};
      Philox::Words counter = known.counter;
      counter[1] = queries[i];
      ASSERT_EQ(found, random_words(counter, known.seed)) << i;
      if (i == trial % kQueries && trial < std::size(kKnownAnswers)) {
        ASSERT_EQ(found, known.answer);
      }
    }
  }
}

/// Runs of keys of all strides, from every remainder of 4, far from 0, and queries in no order.
template <class Real, class Drop>
void expect_the_map(Drop drop) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < repetitions(200); ++trial) {
    const std::int64_t top = trial % 3 == 0 ? std::int64_t{1} << 33 : 50;
    const Modifiers modifiers{.dropout = trial % 5 == 0 ? 1 - 0x1p-32 : trial % 10 * 0.09 + 0.01,
                              .dropout_seed = random()};
    const PositionRun keys{static_cast<std::int64_t>(random() % top),
                           static_cast<std::int64_t>(random() % 20 + 1),
                           static_cast<std::int64_t>(random() % 6 + 1)};
    std::vector<std::int64_t> queries(random() % 60 + 1);
    for (std::int64_t& query : queries) query = static_cast<std::int64_t>(random() >> 32);
    const auto head = static_cast<std::int64_t>(random() % 9), batch = head / 3;
    std::vector<Real> found(static_cast<std::size_t>(keys.count) * queries.size());
    drop(modifiers, batch, head, queries, keys, found);
    for (std::size_t at = 0; at < found.size(); ++at) {
      const std::int64_t key =
          keys.first + static_cast<std::int64_t>(at / queries.size()) * keys.stride;
      const auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
      const Philox::Words words =
          random_words({low(key / 4), low(queries[at % queries.size()]), low(head), low(batch)},
                       modifiers.dropout_seed);
      const bool kept =
          words[static_cast<std::size_t>(key % 4)] >= dropout_threshold(modifiers.dropout);
      ASSERT_EQ(found[at], kept ? static_cast<Real>(dropout_factor(modifiers.dropout)) : Real(0));
    }
  }
}

TEST_P(DropoutWords, decide_about_each_pair_by_its_global_place_alone) {
  expect_the_map<float>([](auto&&... all) { HWY_DYNAMIC_DISPATCH(drop_floats)(all...); });
}
TEST_P(DropoutWords, decide_the_same_for_doubles) {
  expect_the_map<double>([](auto&&... all) { HWY_DYNAMIC_DISPATCH(drop_doubles)(all...); });
}

INSTANTIATE_TEST_SUITE_P(On, DropoutWords, every_kind_of_vectors(), name_of_vectors);

}  // namespace
}  // namespace ringlab::cpu
#endif
