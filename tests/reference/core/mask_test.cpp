#include "reference/core/mask.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "reference/core/error.h"
#include "reference/core/layout.h"

namespace ringlab {
namespace {

using Predicate = std::function<bool(std::int64_t query, std::int64_t key)>;

/// A term beside its definition, one pair at a time.
struct DefinedTerm {
  MaskTerm term;
  Predicate visible;
};

struct Lengths {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
};

DefinedTerm causal(Lengths n) {
  return {CausalMask{}, [n](auto i, auto j) { return j <= i + n.keys - n.queries; }};
}

DefinedTerm prefix(Lengths n, std::int64_t tokens) {
  return {PrefixMask{tokens},
          [=](auto i, auto j) { return j < tokens || j <= i + n.keys - n.queries; }};
}

DefinedTerm window(Lengths n, std::int64_t left, std::int64_t right) {
  return {WindowMask{left, right}, [=](auto i, auto j) {
            const std::int64_t p = i + n.keys - n.queries;
            const bool left_ok = left == WindowMask::kUnlimited || p - j <= left;
            const bool right_ok = right == WindowMask::kUnlimited || j - p <= right;
            return left_ok && right_ok;
          }};
}

DefinedTerm documents(Lengths n, const std::vector<std::int64_t>& lengths) {
  std::vector<std::size_t> owner;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    owner.insert(owner.end(), static_cast<std::size_t>(lengths[d]), d);
  }
  return {DocumentsMask{lengths}, [=](auto i, auto j) {
            const std::int64_t p = i + n.keys - n.queries;
            return p >= 0 &&
                   owner[static_cast<std::size_t>(p)] == owner[static_cast<std::size_t>(j)];
          }};
}

DefinedTerm matrix(Lengths n, const std::vector<std::uint8_t>& bits) {
  return {BitMask{n.queries, n.keys, bits, "m.npy"},
          [=](auto i, auto j) { return bits[static_cast<std::size_t>(i * n.keys + j)] != 0; }};
}

/// The whole range from the first case on: the library narrows it for early cases otherwise.
std::int64_t draw(std::int64_t least, std::int64_t most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(least, most + 1));
}

std::vector<std::int64_t> draw_documents(std::int64_t tokens) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(draw(0, 5)));
  for (std::int64_t& length : lengths) {
    length = draw(0, tokens);
    tokens -= length;
  }
  lengths.push_back(tokens);
  lengths.resize(lengths.size() + static_cast<std::size_t>(draw(0, 2)));
  return lengths;
}

std::int64_t draw_limit() {
  return *rc::gen::element<std::int64_t>(0, 1, 2, 5, 11, INT64_MAX - 1, WindowMask::kUnlimited);
}

DefinedTerm draw_term(Lengths n) {
  switch (draw(0, 4)) {
    case 0:
      return causal(n);
    case 1:
      return window(n, draw_limit(), draw_limit());
    case 2:
      return documents(n, draw_documents(n.keys));
    case 3:
      return prefix(n, draw(0, n.keys + 2));
    default:
      break;
  }
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(n.queries * n.keys));
  for (std::uint8_t& bit : bits) bit = static_cast<std::uint8_t>(draw(0, 2));
  return matrix(n, bits);
}

struct DefinedMask {
  Lengths n;
  Mask mask;
  Predicate visible;
};

DefinedMask define(Lengths n, const std::vector<DefinedTerm>& defined) {
  std::vector<MaskTerm> terms;
  for (const DefinedTerm& term : defined) terms.push_back(term.term);
  return {n, Mask(terms).bind(n.queries, n.keys), [defined](auto i, auto j) {
            for (const DefinedTerm& term : defined) {
              if (!term.visible(i, j)) return false;
            }
            return true;
          }};
}

/// Zero to three terms over lengths 0 … 12, shorter and longer on either side.
DefinedMask draw_mask() {
  const Lengths n = {draw(0, 12), draw(0, 12)};
  std::vector<DefinedTerm> terms(static_cast<std::size_t>(draw(0, 3)));
  for (DefinedTerm& term : terms) term = draw_term(n);
  DefinedMask defined = define(n, terms);
  RC_LOG() << defined.mask.text() << " over " << n.queries << " x " << n.keys << std::endl;
  return defined;
}

/// One rank's share of a layout, an arbitrary subset in arbitrary order, or nothing.
Positions draw_positions(std::int64_t tokens) {
  const auto kind = draw(0, 3);
  if (kind < 3) {
    const int ranks = static_cast<int>(draw(1, 5));
    const Layout layout(static_cast<LayoutKind>(kind), tokens, ranks);
    return layout.positions(static_cast<int>(draw(0, ranks - 1)));
  }
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < tokens; ++i) {
    if (draw(0, 1)) list.insert(list.begin() + draw(0, static_cast<std::int64_t>(list.size())), i);
  }
  return Positions::from_list(list);
}

std::int64_t brute_count(const DefinedMask& defined, const Positions& queries,
                         const Positions& keys) {
  std::int64_t count = 0;
  for (const std::int64_t i : queries.to_list()) {
    for (const std::int64_t j : keys.to_list()) count += defined.visible(i, j) ? 1 : 0;
  }
  return count;
}

RC_GTEST_PROP(MaskTest, allows_exactly_the_pairs_of_the_definition, ()) {
  const DefinedMask defined = draw_mask();
  for (std::int64_t i = 0; i < defined.n.queries; ++i) {
    for (std::int64_t j = 0; j < defined.n.keys; ++j) {
      RC_ASSERT(defined.mask.allows(i, j) == defined.visible(i, j));
    }
  }
}

RC_GTEST_PROP(MaskTest, an_interval_holds_every_allowed_key_and_without_bits_no_other, ()) {
  const DefinedMask defined = draw_mask();
  for (std::int64_t i = 0; i < defined.n.queries; ++i) {
    const KeyInterval interval = defined.mask.interval(i);
    RC_ASSERT(interval.begin >= 0);
    RC_ASSERT(interval.begin <= interval.end);
    RC_ASSERT(interval.end <= defined.n.keys);
    for (std::int64_t j = 0; j < defined.n.keys; ++j) {
      const bool inside = j >= interval.begin && j < interval.end;
      RC_ASSERT(defined.visible(i, j) == (inside && defined.mask.bits_allow(i, j)));
    }
  }
}

RC_GTEST_PROP(MaskTest, counts_allowed_pairs_between_any_two_sets_of_positions, ()) {
  const DefinedMask defined = draw_mask();
  const Positions queries = draw_positions(defined.n.queries);
  const Positions keys = draw_positions(defined.n.keys);
  RC_ASSERT(defined.mask.count(queries, keys) == brute_count(defined, queries, keys));
}

RC_GTEST_PROP(MaskTest, counts_hundreds_of_rows_as_row_by_row, ()) {
  const std::int64_t q_tokens = draw(0, 400), kv_tokens = draw(0, 400);
  const std::int64_t half = draw(0, kv_tokens);
  const Mask mask =
      Mask({*rc::gen::element<MaskTerm>(CausalMask{}, WindowMask{draw(0, 90), draw(0, 90)},
                                        WindowMask{draw(0, 9), 0}, PrefixMask{draw(0, 300)},
                                        DocumentsMask{{half, 0, kv_tokens - half}}),
            *rc::gen::element<MaskTerm>(WindowMask{}, CausalMask{},
                                        DocumentsMask{{half, kv_tokens - half}})})
          .bind(q_tokens, kv_tokens);
  const int ranks = static_cast<int>(draw(1, 5));
  const Layout queries(static_cast<LayoutKind>(draw(0, 2)), q_tokens, ranks);
  const Layout keys(static_cast<LayoutKind>(draw(0, 2)), kv_tokens, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t sum = 0;
    for (const std::int64_t query : queries.positions(rank).to_list()) {
      for (const std::int64_t key : keys.positions(0).to_list()) sum += mask.allows(query, key);
    }
    RC_ASSERT(mask.count(queries.positions(rank), keys.positions(0)) == sum);
  }
}

RC_GTEST_PROP(MaskTest, classifies_any_two_sets_of_positions, ()) {
  const DefinedMask defined = draw_mask();
  const Positions queries = draw_positions(defined.n.queries);
  const Positions keys = draw_positions(defined.n.keys);
  const std::int64_t count = brute_count(defined, queries, keys);
  const Coverage expected = count == 0                              ? Coverage::empty
                            : count == queries.size() * keys.size() ? Coverage::full
                                                                    : Coverage::partial;
  RC_ASSERT(defined.mask.classify(queries, keys) == expected);
}

RC_GTEST_PROP(MaskTest, parts_of_the_keys_add_up_to_the_whole, ()) {
  const DefinedMask defined = draw_mask();
  const int ranks = static_cast<int>(draw(1, 5));
  const Layout layout(static_cast<LayoutKind>(draw(0, 2)), defined.n.keys, ranks);
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    sum += defined.mask.count(Positions::all(defined.n.queries), layout.positions(rank));
  }
  RC_ASSERT(sum == defined.mask.count_all());
}

// The properties above draw terms at random; these go through all small cases of each term.
template <class MakeTerm>
void expect_defined_for_all_lengths(const MakeTerm& make_term) {
  for (std::int64_t queries = 0; queries <= 9; ++queries) {
    for (std::int64_t keys = 0; keys <= 9; ++keys) {
      const Lengths n = {queries, keys};
      const DefinedMask defined = define(n, {make_term(n)});
      for (std::int64_t i = 0; i < queries; ++i) {
        for (std::int64_t j = 0; j < keys; ++j) {
          ASSERT_EQ(defined.mask.allows(i, j), defined.visible(i, j))
              << defined.mask.text() << " " << queries << " x " << keys << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST(MaskTest, causal_is_aligned_at_the_bottom_right_for_all_lengths) {
  expect_defined_for_all_lengths(causal);
}

TEST(MaskTest, windows_of_all_widths_are_right_for_all_lengths) {
  for (std::int64_t left : {0, 1, 3, 20}) {
    for (std::int64_t right : {0, 1, 3, 20}) {
      expect_defined_for_all_lengths([&](Lengths n) { return window(n, left, right); });
    }
    expect_defined_for_all_lengths([&](Lengths n) { return window(n, left, INT64_MAX); });
    expect_defined_for_all_lengths([&](Lengths n) { return window(n, INT64_MAX, left); });
    expect_defined_for_all_lengths([&](Lengths n) { return window(n, INT64_MAX - 1, left); });
  }
}

TEST(MaskTest, prefixes_of_all_lengths_are_right_for_all_lengths) {
  for (std::int64_t tokens = 0; tokens <= 11; ++tokens) {
    expect_defined_for_all_lengths([&](Lengths n) { return prefix(n, tokens); });
  }
}

TEST(MaskTest, no_terms_allow_every_pair) {
  const Mask full = Mask().bind(3, 5);
  EXPECT_EQ(full.count_all(), 15);
  EXPECT_EQ(full.classify(Positions::all(3), Positions::all(5)), Coverage::full);
}

TEST(MaskTest, the_last_query_sees_the_last_key_when_there_are_more_keys) {
  const Mask mask = Mask({CausalMask{}}).bind(2, 5);
  EXPECT_EQ(mask.interval(0).end, 4);
  EXPECT_EQ(mask.interval(1).end, 5);
}

TEST(MaskTest, early_queries_see_nothing_when_there_are_more_queries) {
  const Mask mask = Mask({CausalMask{}}).bind(5, 2);
  EXPECT_EQ(mask.interval(2).size(), 0);
  EXPECT_EQ(mask.interval(3).end, 1);
  EXPECT_EQ(mask.count_all(), 3);
}

TEST(MaskTest, a_query_before_the_first_document_sees_nothing) {
  const Mask mask = Mask({DocumentsMask{{0, 2, 0, 0, 1, 0}}}).bind(5, 3);
  EXPECT_EQ(mask.interval(0).size(), 0);  // p = -2
  EXPECT_EQ(mask.interval(1).size(), 0);  // p = -1
  EXPECT_EQ(mask.interval(2).end, 2);     // p = 0
  EXPECT_EQ(mask.interval(4).begin, 2);   // p = 2
  EXPECT_EQ(mask.count_all(), 2 + 2 + 1);
}

TEST(MaskTest, documents_keep_packed_sequences_apart) {
  const Mask mask = Mask({DocumentsMask{{3, 1, 4}}, CausalMask{}}).bind(8, 8);
  EXPECT_EQ(mask.count_all(), 6 + 1 + 10);
  EXPECT_FALSE(mask.allows(3, 2));
  EXPECT_FALSE(mask.allows(2, 3));
  EXPECT_TRUE(mask.allows(7, 4));
}

TEST(MaskTest, queries_and_keys_outside_the_lengths_are_never_allowed) {
  const Lengths n = {2, 2};
  const Mask bits = define(n, {matrix(n, {1, 1, 1, 1})}).mask;
  for (const Mask& mask : {Mask().bind(2, 2), bits}) {
    for (const std::int64_t outside : {std::int64_t{-1}, std::int64_t{2}, INT64_MAX, INT64_MIN}) {
      EXPECT_FALSE(mask.allows(outside, 0));
      EXPECT_FALSE(mask.allows(0, outside));
      EXPECT_EQ(mask.interval(outside).size(), 0);
    }
  }
  EXPECT_FALSE(bits.bits_allow(2, 0));
}

TEST(MaskTest, an_unbound_mask_allows_nothing) {
  EXPECT_FALSE(Mask({CausalMask{}}).allows(0, 0));
  EXPECT_EQ(Mask().count(Positions::all(3), Positions::all(3)), 0);
}

TEST(MaskTest, a_mask_can_be_bound_again_to_other_lengths) {
  const Mask mask = Mask({CausalMask{}}).bind(3, 3).bind(4, 4);
  EXPECT_EQ(mask.count_all(), 10);
  EXPECT_EQ(mask.terms().size(), 1u);
}

TEST(MaskTest, counts_of_a_million_causal_tokens_are_exact) {
  constexpr std::int64_t kTokens = 1'000'000;
  const Mask mask = Mask({CausalMask{}}).bind(kTokens, kTokens);
  EXPECT_EQ(mask.count_all(), kTokens * (kTokens + 1) / 2);
}

// Row by row this would take hours.
TEST(MaskTest, counts_of_three_billion_tokens_are_exact_and_soon_there) {
  constexpr std::int64_t kTokens = 3'000'000'000;
  const Mask causal = Mask({CausalMask{}}).bind(kTokens, kTokens);
  EXPECT_EQ(causal.count_all(), kTokens * (kTokens + 1) / 2);
  const Mask window = Mask({WindowMask{1000, 0}}).bind(kTokens, kTokens);
  EXPECT_EQ(window.count_all(), kTokens * 1001 - 1000 * 1001 / 2);
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag}) {
    const Layout layout(kind, kTokens, 7);
    std::int64_t sum = 0;
    for (int queries = 0; queries < 7; ++queries) {
      for (int keys = 0; keys < 7; ++keys) {
        sum += causal.count(layout.positions(queries), layout.positions(keys));
      }
    }
    EXPECT_EQ(sum, causal.count_all());
  }
}

std::string bind_error(const MaskTerm& term, std::int64_t queries, std::int64_t keys) {
  try {
    Mask({term}).bind(queries, keys);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "accepted";
}

TEST(MaskTest, documents_that_do_not_fill_the_keys_are_input_errors_that_give_both_sums) {
  EXPECT_EQ(bind_error(DocumentsMask{{2, 2}}, 5, 5),
            "mask documents: expected lengths that sum to the 5 key tokens, found a sum of 4. Give "
            "one length per document, in order");
  EXPECT_NE(bind_error(DocumentsMask{}, 1, 1), "accepted");
  EXPECT_NE(bind_error(DocumentsMask{{INT64_MAX, INT64_MAX, 7}}, 5, 5), "accepted");
  EXPECT_NE(bind_error(DocumentsMask{{6, -1}}, 5, 5), "accepted");
  EXPECT_EQ(bind_error(DocumentsMask{}, 1, 0), "accepted");
}

TEST(MaskTest, matrices_of_another_shape_are_input_errors) {
  const std::vector<std::uint8_t> six(6);
  EXPECT_EQ(
      bind_error(BitMask{2, 3, six, "m.npy"}, 3, 2),
      "mask file:m.npy: expected a matrix (3, 2), found (2, 3). Rows are queries, columns are "
      "keys");
  EXPECT_NE(bind_error(BitMask{2, 4, six, ""}, 2, 4), "accepted");
  EXPECT_NE(bind_error(BitMask{2, 3, SharedBytes(), ""}, 2, 3), "accepted");
  EXPECT_EQ(bind_error(BitMask{2, 3, six, ""}, 2, 3), "accepted");
}

TEST(MaskTest, negative_numbers_are_input_errors) {
  EXPECT_NE(bind_error(WindowMask{-1, 0}, 2, 2), "accepted");
  EXPECT_NE(bind_error(WindowMask{0, -1}, 2, 2), "accepted");
  EXPECT_NE(bind_error(PrefixMask{-1}, 2, 2), "accepted");
  EXPECT_NE(bind_error(CausalMask{}, -1, 2), "accepted");
  EXPECT_NE(bind_error(CausalMask{}, 2, -1), "accepted");
}

}  // namespace
}  // namespace ringlab
