// Gradients of rearranged heads, channels, keys or documents.
#include <algorithm>
#include <cmath>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/gradients/backward.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

/// Sums heads of a group: (batch, q_heads, …) to (batch, kv_heads, …).
Tensor<double> summed_over_groups(const Tensor<double>& x, std::int64_t group) {
  Extents e = x.extents();
  e.heads /= group;
  Tensor<double> sum(e);
  for_each_index(x.extents(),
                 [&](auto b, auto h, auto t, auto c) { sum(b, h / group, t, c) += x(b, h, t, c); });
  return sum;
}

/// The bounds widened by adding up in double: by nothing for exact subjects narrower than f64.
Tensor<double> with_rounding(const Tensor<double>& allowed, const Tensor<double>& value) {
  return mapped(allowed, [&](double bound, auto b, auto h, auto t, auto c) {
    return bound * (1 + 0x1p-40) + 0x1p-49 * std::abs(value(b, h, t, c));
  });
}

/// Holds because a shared K/V head is one variable used by several query heads. Finds heads of a
/// group that overwrite each other's part.
LawResult grouped_heads_sum_up(const Subject& subject, const Case& c) {
  const GradientTrial grouped = make_gradient_trial(c);
  GradientTrial repeated = grouped;
  const std::int64_t group = grouped.base.group();
  Indices from;
  for (std::int64_t h = 0; h < c.shape.q_heads; ++h) from.push_back(h / group);
  repeated.base.problem.shape.kv_heads = c.shape.q_heads;
  repeated.base.data.k = pick_heads(grouped.base.data.k, from);
  repeated.base.data.v = pick_heads(grouped.base.data.v, from);
  MeasuredGradients parts = measure_gradients(subject, repeated);
  for (auto tensor : {&AttentionGradients::dk, &AttentionGradients::dv}) {
    const Tensor<double> sizes = summed_over_groups(
        mapped(parts.got.*tensor, [](double x, auto...) { return std::abs(x); }), group);
    parts.got.*tensor = summed_over_groups(parts.got.*tensor, group);
    Tensor<double>& allowed =
        tensor == &AttentionGradients::dk ? parts.allowed.dk : parts.allowed.dv;
    allowed = with_rounding(summed_over_groups(allowed, group), sizes);
  }
  return same_gradients("K/V heads repeated, and their gradients summed", parts,
                        measure_gradients(subject, grouped));
}

Case grouped_case(Case c) {
  if (c.shape.q_heads == c.shape.kv_heads) c.shape.q_heads = 2 * c.shape.kv_heads;
  return with_tokens(c);
}

enum class Signs { kept, dropped };

/// Channel pairs (x, y) become factor · (x - y, x + y); with signs dropped (|x| + |y|) twice.
Tensor<double> paired(const Tensor<double>& x, double factor, Signs signs) {
  const std::int64_t last = x.extents().channels / 2 * 2;
  return mapped(x, [&](double value, auto b, auto h, auto t, auto c) {
    if (c >= last) return value;
    const double partner = x(b, h, t, c ^ 1);
    const double lower = signs == Signs::dropped ? partner : -partner;
    return factor * (c % 2 == 0 ? value + lower : partner + value);
  });
}

/// Holds because scores stay when q becomes A q and k becomes A^-T k; dq then becomes A^-T dq and
/// dk A dk. Finds channels swapped or left out between the passes.
LawResult gradients_of_rotated_channels(const Subject& subject, const Case& c) {
  const GradientTrial base = make_gradient_trial(c);
  GradientTrial turned = base;
  turned.base.data.q = paired(base.base.data.q, 1.0, Signs::kept);
  turned.base.data.k = paired(base.base.data.k, 0.5, Signs::kept);
  const MeasuredGradients before = measure_gradients(subject, base);
  const MeasuredGradients after = measure_gradients(subject, turned);
  MeasuredGradients want = before;
  want.got.dq = paired(before.got.dq, 0.5, Signs::kept);
  want.got.dk = paired(before.got.dk, 1.0, Signs::kept);
  want.allowed.dq = with_rounding(paired(before.allowed.dq, 0.5, Signs::dropped), want.got.dq);
  want.allowed.dk = with_rounding(paired(before.allowed.dk, 1.0, Signs::dropped), want.got.dk);
  return same_gradients("pairs of channels rotated", after, want);
}

Case integer_pairs(Case c) {
  return with_tokens(plain_values(at_least_two_channels(std::move(c))));
}

/// Holds because no sum knows the order of keys. Finds dk and dv written to the wrong row.
LawResult gradients_of_permuted_keys(const Subject& subject, const Case& c) {
  const GradientTrial base = make_gradient_trial(c);
  const Indices order = shuffled(c.shape.kv_tokens, c.seed);
  const GradientTrial moved{with_keys(base.base, order), base.dout};
  MeasuredGradients want = measure_gradients(subject, base);
  for (Tensor<double>* tensor : {&want.got.dk, &want.got.dv, &want.allowed.dk, &want.allowed.dv}) {
    *tensor = pick_tokens(*tensor, order);
  }
  return same_gradients("keys permuted", measure_gradients(subject, moved), want);
}

/// Tokens first … first+count-1 of a square problem on their own.
GradientTrial document(const GradientTrial& packed, std::int64_t first, std::int64_t count) {
  Indices tokens = in_order(count);
  for (std::int64_t& token : tokens) token += first;
  GradientTrial alone = packed;
  alone.base.problem.shape.q_tokens = alone.base.problem.shape.kv_tokens = count;
  alone.base.problem.mask = Mask({CausalMask{}}).bind(count, count);
  alone.base.data = {pick_tokens(packed.base.data.q, tokens),
                     pick_tokens(packed.base.data.k, tokens),
                     pick_tokens(packed.base.data.v, tokens)};
  alone.dout = pick_tokens(packed.dout, tokens);
  return alone;
}

/// Holds because no row sees another document. Finds gradients that leak across the border, and
/// document lengths read at the wrong token.
LawResult packed_documents(const Subject& subject, const Case& c) {
  const GradientTrial packed = make_gradient_trial(c);
  const MeasuredGradients together = measure_gradients(subject, packed);
  std::int64_t first = 0;
  std::vector<LawResult> results;
  for (const std::int64_t count : std::get<DocumentsMask>(c.mask.terms().back()).lengths) {
    Indices tokens = in_order(count);
    for (std::int64_t& token : tokens) token += first;
    MeasuredGradients part = together;
    for (Tensor<double>* x : {&part.got.dq, &part.got.dk, &part.got.dv, &part.allowed.dq,
                              &part.allowed.dk, &part.allowed.dv}) {
      *x = pick_tokens(*x, tokens);
    }
    results.push_back(same_gradients("the document from token " + std::to_string(first) + " alone",
                                     measure_gradients(subject, document(packed, first, count)),
                                     part));
    first += count;
  }
  return all_held(results);
}

Case two_documents(Case c) {
  c = with_tokens(c);
  c.shape.q_tokens = c.shape.kv_tokens;
  const std::int64_t first = Draws(c.seed).below(c.shape.kv_tokens + 1);
  c.mask =
      "causal+documents:" + std::to_string(first) + "," + std::to_string(c.shape.kv_tokens - first);
  return c;
}

}  // namespace

std::vector<Law> gradient_symmetry_laws() {
  return {
      {.id = "P51",
       .name = "gradients_of_grouped_heads_are_sums_over_the_group",
       .statement = "dk and dv of a shared head are the sums over repeated heads.",
       .shape_case = grouped_case,
       .needs = {Ability::backward},
       .check = grouped_heads_sum_up},
      {.id = "P54",
       .name = "rotating_channels_rotates_dq_and_dk",
       .statement = "A rotation of q and k that keeps all scores turns dq and dk the other way.",
       .shape_case = integer_pairs,
       .needs = {Ability::backward},
       .check = gradients_of_rotated_channels},
      {.id = "P55",
       .name = "permuting_keys_permutes_dk_and_dv",
       .statement = "Keys, values and mask permuted together.",
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = gradients_of_permuted_keys},
      {.id = "P56",
       .name = "gradients_of_packed_documents_equal_separate_runs",
       .statement = "Each document gets the gradients it gets alone.",
       .shape_case = two_documents,
       .needs = {Ability::backward},
       .check = packed_documents},
  };
}

}  // namespace ringlab::verify
