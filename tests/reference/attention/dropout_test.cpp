// The generator behind dropout: published answers, two implementations, the map of pairs to words.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "property_tests/oracles/quad_modifiers.h"
#include "reference/attention/modified.h"

namespace ringlab {
namespace {

using Words = std::array<std::uint32_t, 4>;

struct KnownAnswer {
  Words counter;
  std::array<std::uint32_t, 2> key;
  Words answer;
};

// Random123's kat_vectors, philox 4x32 with 10 rounds: zeros, ones, digits of pi.
constexpr KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

Words words_of(const Words& counter, const std::array<std::uint32_t, 2>& key) {
  const std::uint64_t both = key[0] | std::uint64_t{key[1]} << 32;
  const PhiloxWords words = random_words({{counter[0], counter[1], counter[2], counter[3]}}, both);
  return {words.word[0], words.word[1], words.word[2], words.word[3]};
}

TEST(Philox, gives_the_published_answers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    EXPECT_EQ(words_of(known.counter, known.key), known.answer);
    EXPECT_EQ(quad::philox(known.counter, known.key), known.answer);
  }
}

TEST(Philox, is_the_same_in_both_implementations) {
  std::mt19937 random(1);
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  for (int i = 0; i < 1000; ++i) {
    const Words counter = {word(), word(), word(), word()};
    const std::array<std::uint32_t, 2> key = {word(), word()};
    EXPECT_EQ(words_of(counter, key), quad::philox(counter, key));
  }
}

TEST(Dropout, keeps_pairs_by_the_map_that_the_header_fixes) {
  const std::uint64_t seed = 0x0123456789abcdef;
  const Modifiers modifiers{.dropout = 0.3, .dropout_seed = seed};
  const Dropout dropout(modifiers);
  for (const std::int64_t key : {0L, 1L, 2L, 3L, 4L, 1023L, (1L << 34) - 1}) {
    for (const std::int64_t query : {0L, 5L, (1L << 32) - 1}) {
      const Words words = quad::philox(
          {static_cast<std::uint32_t>(key / 4), static_cast<std::uint32_t>(query), 7, 2},
          {0x89abcdef, 0x01234567});
      EXPECT_EQ(dropout.keeps(2, 7, query, key),
                words[static_cast<std::size_t>(key % 4)] >= dropout_threshold(0.3));
    }
  }
}

TEST(Dropout, drops_its_share_of_all_pairs) {
  // Five standard deviations of a binomial count.
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    const Dropout dropout(Modifiers{.dropout = p, .dropout_seed = 3});
    std::int64_t dropped = 0;
    constexpr std::int64_t kSide = 256;
    for (std::int64_t i = 0; i < kSide; ++i) {
      for (std::int64_t j = 0; j < kSide; ++j) dropped += !dropout.keeps(0, 1, i, j);
    }
    const double pairs = kSide * kSide;
    EXPECT_NEAR(static_cast<double>(dropped), p * pairs, 5 * std::sqrt(p * (1 - p) * pairs)) << p;
  }
}

TEST(Dropout, differs_between_batches_heads_and_seeds) {
  const Dropout dropout(Modifiers{.dropout = 0.5, .dropout_seed = 3});
  const Dropout other_seed(Modifiers{.dropout = 0.5, .dropout_seed = 3ull << 32});
  int batches = 0, heads = 0, seeds = 0;
  for (std::int64_t j = 0; j < 1000; ++j) {
    const bool kept = dropout.keeps(0, 0, 9, j);
    batches += kept != dropout.keeps(1, 0, 9, j);
    heads += kept != dropout.keeps(0, 1, 9, j);
    seeds += kept != other_seed.keeps(0, 0, 9, j);
  }
  for (const int differing : {batches, heads, seeds}) {
    EXPECT_NEAR(differing, 500, 5 * std::sqrt(250.0));
  }
}

TEST(Dropout, of_probability_zero_keeps_everything) {
  const Dropout none{Modifiers{}};
  EXPECT_FALSE(none.active());
  EXPECT_EQ(none.factor(0, 0, 0, 0), 1);
  const Dropout rare{Modifiers{.dropout = 0x1p-60}};  // rounds to no word at all
  EXPECT_EQ(rare.factor(1, 2, 3, 4), 1);
}

}  // namespace
}  // namespace ringlab
