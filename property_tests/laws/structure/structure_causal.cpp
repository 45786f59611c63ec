// Causal attention: the future does not exist.
#include <algorithm>
#include <string>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/structure/structure.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

Case causal_case(Case c) {
  c = with_tokens(c);
  if (!c.mask.has<CausalMask>()) c.mask = "causal";
  return c;
}

Case causal_case_or_decoding(Case c) { return causal_case(some_with_few_queries(std::move(c))); }

/// Holds because a causal row has no term of a later token. Finds masks applied after the softmax
/// or as a large negative number (NaN shows), and diagonals off by one.
LawResult future_changes_nothing(const Subject& subject, const Case& c) {
  const std::int64_t row = Draws(c.seed).below(c.shape.q_tokens);
  const std::int64_t position = row + first_position(c);
  return unchanged_under(
      subject, c, "tokens after query " + std::to_string(row),
      [&](AttentionTensors& tensors, double poison) {
        fill_tokens(tensors.q, row + 1, c.shape.q_tokens, poison);
        fill_tokens(tensors.k, position + 1, c.shape.kv_tokens, poison);
        fill_tokens(tensors.v, position + 1, c.shape.kv_tokens, poison);
      },
      [row](std::int64_t token) { return token <= row; });
}

Case prefix_case(Case c) {
  c = causal_case(c);
  if (c.mask.has<DocumentsMask>() || c.mask.has<DrawnBits>()) c.mask = "causal";
  return c;
}

/// Holds because causal rows have no later token. Shorter tensors show padding of the last tile.
LawResult truncated_run_agrees(const Subject& subject, const Case& c) {
  const Trial whole = make_trial(c);
  const std::int64_t longest_drop = std::min(c.shape.q_tokens - 1, c.shape.kv_tokens);
  const std::int64_t dropped = Draws(c.seed).between(0, longest_drop);
  AttentionInput shorter = whole.input();
  Shape& shape = shorter.problem.shape;
  shape.q_tokens -= dropped;
  shape.kv_tokens -= dropped;
  shorter.problem.mask = shorter.problem.mask.bind(shape.q_tokens, shape.kv_tokens);
  shorter.q = token_slice(shorter.q, 0, shape.q_tokens);
  shorter.k = token_slice(shorter.k, 0, shape.kv_tokens);
  shorter.v = token_slice(shorter.v, 0, shape.kv_tokens);
  return within_both_bounds(
      "without the last " + std::to_string(dropped) + " tokens",
      run_with_bounds(subject, shorter, whole.options),
      row_slice(run_with_bounds(subject, whole.input(), whole.options), 0, shape.q_tokens));
}

Case first_row_case(Case c) {
  c = with_tokens(c);
  c.shape.q_tokens = std::max(c.shape.q_tokens, c.shape.kv_tokens);
  c.mask = "causal";
  return c;
}

/// Holds because the weight of a single key is 1. Finds positions aligned to the top left corner.
LawResult first_row_is_first_value(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  return row_is_value(subject, trial, attend(subject, trial),
                      {.row = -first_position(c), .key = 0});
}

/// Fewer keys than make steps of a half in the means too small for the significant bits of bf16.
Case few_keys_causal_case(Case c) {
  constexpr std::int64_t kMostKeys = 100;
  c = with_tokens(c);
  c.shape.kv_tokens = std::min(c.shape.kv_tokens, kMostKeys);
  c.mask = "causal";
  return c;
}

/// Equal scores and v = the key's index: row p averages 0 … p, and one more key adds one half.
/// Finds a mask whose edge is off by one, to either side.
LawResult one_more_key_raises_the_mean(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  fill_tokens(trial.data.k, 0, c.shape.kv_tokens, 0);
  for (std::int64_t j = 0; j < c.shape.kv_tokens; ++j) {
    fill_tokens(trial.data.v, j, j + 1, static_cast<double>(j));
  }
  const AttentionOutput before = attend(subject, trial);
  trial.problem.mask = Mask({WindowMask{.right = 1}}).bind(c.shape.q_tokens, c.shape.kv_tokens);
  const AttentionOutput after = attend(subject, trial);
  LawResult result;
  for_each_index(before.out.extents(), [&](auto b, auto h, auto t, auto channel) {
    const std::int64_t position = t + first_position(c);
    const bool sees_more = position >= 0 && position + 1 < c.shape.kv_tokens;
    if (!sees_more || after.out(b, h, t, channel) > before.out(b, h, t, channel)) return;
    result = broken("query " + std::to_string(t) +
                    " sees one more key with a larger value, and its mean did not rise");
  });
  return result;
}

}  // namespace

std::vector<Law> causal_laws() {
  return {
      {.id = "P29",
       .name = "changing_a_later_token_changes_no_earlier_row",
       .statement = "Causal: rows up to i keep their bits when every later q, k and v is "
                    "overwritten.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = causal_case_or_decoding,
       .check = future_changes_nothing,
       .shape_simpler_case = causal_case},
      {.id = "P30",
       .name = "a_causal_run_cut_short_gives_the_same_rows",
       .statement = "Causal: dropping the last tokens changes none of the rows that are left.",
       .shape_case = prefix_case,
       .check = truncated_run_agrees},
      {.id = "P31",
       .name = "the_first_causal_row_is_the_first_value",
       .statement = "Causal: the row that sees only key 0 returns v of key 0, to the bit.",
       .exact = true,
       .shape_case = first_row_case,
       .check = first_row_is_first_value},
      {.id = "P32",
       .name = "showing_one_more_larger_value_raises_the_mean",
       .statement = "Equal scores: one more visible key with a larger value raises the output.",
       .exact = true,
       .shape_case = few_keys_causal_case,
       .check = one_more_key_raises_the_mean},
  };
}

}  // namespace ringlab::verify
