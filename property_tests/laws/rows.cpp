// Rows, heads and batches do not see each other: bit for bit.
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/findings.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

AttentionOutput picked(const AttentionOutput& x,
                       Tensor<double> (*pick)(const Tensor<double>&, const Indices&),
                       const Indices& from) {
  return {pick(x.out, from), pick(x.lse, from)};
}

/// A permutation of the queries that keeps each on its rank, where the order of the keys is that
/// rank's own.
Indices shuffled_within_ranks(const Layout& layout, std::uint64_t seed) {
  Indices order(static_cast<std::size_t>(layout.tokens()));
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const auto held = layout.positions(rank).to_list();
    const Indices local = shuffled(static_cast<std::int64_t>(held.size()), seed);
    for (std::size_t i = 0; i < held.size(); ++i) {
      order[static_cast<std::size_t>(held[i])] = held[static_cast<std::size_t>(local[i])];
    }
  }
  return order;
}

/// Holds because a row of attention is a function of its own query alone. Finds a running maximum
/// that is shared by the rows of a tile, and tiles that end at the wrong query.
LawResult permuted_queries(const Subject& subject, const Case& c) {
  Trial base = make_trial(c);
  const Pairs visible = visible_pairs(base.problem);
  use_pairs(base.problem, visible);  // both runs see the mask in the same form
  const Indices order =
      shuffled_within_ranks(make_layout(base.options, c.shape.q_tokens, {}), c.seed);
  Trial permuted = base;
  permuted.data.q = pick_tokens(base.data.q, order);
  use_pairs(permuted.problem,
            make_pairs(visible.queries, visible.keys, [&](std::int64_t i, std::int64_t j) {
              return visible(order[static_cast<std::size_t>(i)], j);
            }));
  return same_bits(attend(subject, permuted), picked(attend(subject, base), pick_tokens, order));
}

/// Puts NaN in every other batch and head.
/// Holds because heads share nothing but K and V. Finds strides that are off by a head, and vectors
/// that load a neighbour and multiply it by 0.
LawResult independent_heads(const Subject& subject, const Case& c) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Trial base = make_trial(c);
  const std::int64_t group = c.shape.q_heads / c.shape.kv_heads;
  Draws draws(c.seed);
  const std::int64_t batch = draws.below(c.shape.batch);
  const std::int64_t head = draws.below(c.shape.q_heads);
  const auto keep = [&](std::int64_t kept_head) {
    return [&, kept_head](double x, auto b, auto h, auto, auto) {
      return b == batch && h == kept_head ? x : kNaN;
    };
  };
  Trial poisoned = base;
  poisoned.data.q = mapped(base.data.q, keep(head));
  poisoned.data.k = mapped(base.data.k, keep(head / group));
  poisoned.data.v = mapped(base.data.v, keep(head / group));
  const auto only = [&](const AttentionOutput& x) {
    return picked(picked(x, pick_batches, {batch}), pick_heads, {head});
  };
  std::optional<ForwardTolerance> allowed = allowed_between_runs(subject, base);
  if (allowed) {
    AttentionOutput kept = only({allowed->out, allowed->lse});
    allowed = ForwardTolerance{std::move(kept.out), std::move(kept.lse)};
  }
  return same_rows("NaN in all others", only(attend(subject, poisoned)),
                   only(attend(subject, base)), {}, allowed);
}

/// Holds because batches share nothing. Finds kernels chosen by batch size that round otherwise.
LawResult independent_of_batch_size(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  const Indices one = {Draws(c.seed).below(c.shape.batch)};
  Trial alone = base;
  alone.problem.shape.batch = 1;
  alone.data = {pick_batches(base.data.q, one), pick_batches(base.data.k, one),
                pick_batches(base.data.v, one)};
  return same_bits(attend(subject, alone), picked(attend(subject, base), pick_batches, one));
}

/// Holds because grouping is only a way to index K and V. Finds h % kv_heads in place of h / group.
LawResult replicated_kv_heads(const Subject& subject, const Case& c) {
  const Trial grouped = make_trial(c);
  Trial repeated = grouped;
  Indices from;
  for (std::int64_t h = 0; h < c.shape.q_heads; ++h) {
    from.push_back(h / (c.shape.q_heads / c.shape.kv_heads));
  }
  repeated.problem.shape.kv_heads = c.shape.q_heads;
  repeated.data.k = pick_heads(grouped.data.k, from);
  repeated.data.v = pick_heads(grouped.data.v, from);
  return same_bits(attend(subject, grouped), attend(subject, repeated));
}

Case two_batches(Case c) {
  if (c.shape.batch < 2) c.shape.batch = 2;
  return c;
}

Case grouped_heads(Case c) {
  if (c.shape.q_heads == c.shape.kv_heads) c.shape.q_heads = 2 * c.shape.kv_heads;
  return c;
}

}  // namespace

std::vector<Law> row_laws() {
  return {
      {.id = "P17",
       .name = "permuting_queries_permutes_the_rows",
       .statement = "each row of O and lse depends on its own query only, bit for bit",
       .exact = true,
       .needs = {Ability::same_bits_per_row},
       .check = permuted_queries},
      {.id = "P18",
       .name = "other_heads_and_batches_do_not_matter",
       .statement = "one head's O and lse keep their bits when all others hold NaN",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = with_a_neighbour,
       .check = independent_heads},
      {.id = "P19",
       .name = "a_batch_element_alone_gives_the_same_bits",
       .statement = "the size of the batch does not change a row",
       .exact = true,
       .shape_case = two_batches,
       .needs = {Ability::same_bits_per_row},
       .check = independent_of_batch_size},
      {.id = "P20",
       .name = "grouped_heads_equal_repeated_kv_heads",
       .statement = "query head h reads K/V head h / group: the same bits as with every K/V head "
                    "repeated",
       .exact = true,
       .shape_case = grouped_heads,
       .needs = {Ability::same_bits_per_row},
       .check = replicated_kv_heads}};
}

}  // namespace ringlab::verify
