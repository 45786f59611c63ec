// Thousands of queries against thousands of keys, of which no row is left out.
#include <algorithm>
#include <cmath>

#include "property_tests/generators/reach.h"
#include "property_tests/laws/findings.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/sizes/norm_bounds.h"

namespace ringlab::verify {
namespace {

/// The fewest rows of cases in f64, whose reference is slower.
constexpr std::int64_t kManyRowsInDouble = 701;
/// The difference between the fewest and the most rows.
constexpr std::int64_t kFewerRows = 200;

/// The case with one small head, on four ranks at most, and with a mask that is no matrix of bits:
/// replay tokens allow those kMostDrawnPairs pairs only.
Case with_one_small_head(Case c) {
  Shape& s = c.shape;
  s.batch = s.kv_heads = s.q_heads = 1;
  s.head_dim = std::min<std::int64_t>(s.head_dim, 4);
  s.v_dim = std::min<std::int64_t>(s.v_dim, 4);
  c.ranks = std::min(c.ranks, 4);
  if (c.mask.has_bits()) c.mask = "causal";
  return c;
}
Case with_small_heads_and_tokens(Case c) {
  c = with_one_small_head(std::move(c));
  c.shape.q_tokens = std::max<std::int64_t>(c.shape.q_tokens, 1);
  c.shape.kv_tokens = std::max<std::int64_t>(c.shape.kv_tokens, 1);
  return c;
}
Case with_thousands_of_rows(Case c) {
  c = with_one_small_head(std::move(c));
  const std::int64_t least =
      c.dtype == DType::f64 ? kManyRowsInDouble : reach_of(c).row_tokens - kFewerRows;
  c.shape.q_tokens = c.shape.kv_tokens =
      least + static_cast<std::int64_t>(c.seed % static_cast<std::uint64_t>(kFewerRows));
  c.tile_queries = std::max<std::int64_t>(c.tile_queries, 32);
  c.tile_keys = std::max<std::int64_t>(c.tile_keys, 32);
  if (c.seed % 3 == 0) c.mask = "full";
  if (c.seed % 3 == 1) c.mask = "causal";
  return c;
}

/// True when most numbers would be right as zeros: nothing can be learned from the case.
bool most_zeros_would_pass(const ExactForward& exact, const ForwardTolerance& allowed) {
  std::int64_t clear = 0, seen = 0;
  for_each_index(exact.out.extents(), [&](auto b, auto h, auto i, auto c) {
    if (std::isinf(exact.lse(b, h, i, 0))) return;
    ++seen;
    clear += std::abs(exact.out(b, h, i, c)) > allowed.out(b, h, i, c);
  });
  return 2 * clear < seen;
}

/// Holds as equals_reference does, with bounds from norms. Finds one wrong row among thousands:
/// rows of one number of blocks, of one thread, of one wave; a sample of rows would miss it, and in
/// sums over rows the rounding of all others hides it.
LawResult every_row_equals_exact(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const AttentionInput input = trial.input();
  const AttentionOutput got = attend(subject, trial);
  const ExactForward exact = sufficient_forward(input);
  const ForwardTolerance allowed =
      tolerance_by_norms(input, exact, subject.profile(trial.problem, trial.options));
  LawResult result = both(matches("o", got.out, exact.out, allowed.out),
                          matches("lse", got.lse, exact.lse, allowed.lse));
  if (result.outcome == Outcome::held && most_zeros_would_pass(exact, allowed)) {
    return unbounded("zeros would pass in most rows");
  }
  return result;
}

}  // namespace

std::vector<Law> every_row_laws() {
  return {{.id = "every_row",
           .name = "thousands_of_rows_give_what_the_exact_reference_gives",
           .statement = "Thousands of queries against as many keys: o and lse of every single row "
                        "lie within bounds from the norms of q, k and v.",
           .shape_case = with_thousands_of_rows,
           .check = every_row_equals_exact,
           .shape_simpler_case = with_small_heads_and_tokens,
           .cost = 40}};
}

}  // namespace ringlab::verify
