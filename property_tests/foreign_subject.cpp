#include "property_tests/foreign_subject.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "property_tests/endings.h"
#include "reference/attention/exact.h"

namespace ringlab::verify {
namespace {

/// Points `view` at a copy in `copies` unless it is dense already. Dense views keep their address.
void make_dense(TensorView<const double>& view, std::vector<Tensor<double>>& copies) {
  if (is_dense(view)) {
    view.strides = dense_strides(view.extents);
    return;
  }
  copies.push_back(dense_copy<double>(view));
  view = std::as_const(copies.back()).view();
}

/// x with 0 where it is not finite.
Tensor<double> finite_part(const TensorView<const double>& x) {
  Tensor<double> finite(x.extents);
  for_each_index(x.extents, [&](auto b, auto h, auto t, auto c) {
    const double value = x(b, h, t, c);
    finite(b, h, t, c) = std::isfinite(value) ? value : 0;
  });
  return finite;
}

/// Flags of the tokens that hold a number that is not finite: (batch, heads, tokens, 1).
Tensor<double> spoiled_tokens(const TensorView<const double>& x) {
  Extents extents = x.extents;
  extents.channels = 1;
  Tensor<double> spoiled(extents);
  for_each_index(x.extents, [&](auto b, auto h, auto t, auto c) {
    if (!std::isfinite(x(b, h, t, c))) spoiled(b, h, t, 0) = 1;
  });
  return spoiled;
}

bool any(const Tensor<double>& flags) {
  return std::any_of(flags.values().begin(), flags.values().end(),
                     [](double flag) { return flag != 0; });
}

/// Writes NaN to rows that see a number that is not finite, which the oracle does not take.
void spoil_rows(const AttentionInput& input, Tensor<double>& lse) {
  const Tensor<double> queries = spoiled_tokens(input.q);
  const Tensor<double> keys = spoiled_tokens(input.k);
  if (!any(queries) && !any(keys)) return;
  const Problem& problem = input.problem;
  const std::int64_t group = problem.shape.q_heads / problem.shape.kv_heads;
  for_each_index(lse.extents(), [&](auto b, auto h, auto i, auto) {
    const KeyInterval seen = problem.mask.interval(i);
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      const bool spoiled = queries(b, h, i, 0) != 0 || keys(b, h / group, j, 0) != 0;
      if (!spoiled || !problem.mask.allows(i, j)) continue;
      lse(b, h, i, 0) = std::numeric_limits<double>::quiet_NaN();
    }
  });
}

/// The oracle's lse. It depends on q and k alone, so one channel of zeros does for v.
Tensor<double> lse_of(const AttentionInput& input) {
  AttentionInput scores = input;
  scores.dout = {};
  scores.problem.shape.v_dim = 1;
  const Tensor<double> q = finite_part(input.q);
  const Tensor<double> k = finite_part(input.k);
  const Tensor<double> v(scores.problem.shape.v());
  scores.q = q.view();
  scores.k = k.view();
  scores.v = v.view();
  Tensor<double> lse = exact_forward(scores).lse;
  for (double& value : lse.values()) value = round_to(DType::f32, value);
  spoil_rows(input, lse);
  return lse;
}

RunResult run_within(const Subject& raw, const AttentionInput& input, const RunOptions& options) {
  AttentionInput given = input;
  std::vector<Tensor<double>> copies;
  copies.reserve(4);
  given.problem = as_read(raw.can, std::move(given.problem));
  const std::string reason = obstacle(raw.can, given.problem);
  if (!reason.empty()) throw Unsupported(reason);
  if (input.dout && !raw.can.has(Ability::backward)) throw Unsupported("gives no gradients");
  if (!raw.can.has(Ability::strided_inputs)) {
    for (TensorView<const double>* view : {&given.q, &given.k, &given.v}) {
      make_dense(*view, copies);
    }
    if (given.dout) make_dense(*given.dout, copies);
  }
  RunResult result = raw.run(given, options);
  if (!raw.can.has(Ability::lse)) result.output.lse = lse_of(input);
  return result;
}

/// Plain masks: every key, every key up to the query's own position, or a window around it.
std::vector<Mask> plain_masks(const Mask& mask) {
  const std::int64_t shift = mask.kv_tokens() - mask.q_tokens();
  WindowMask window{0, 0};
  bool some = false;
  for (std::int64_t i = 0; i < mask.q_tokens(); ++i) {
    for (std::int64_t j = 0; j < mask.kv_tokens(); ++j) {
      if (!mask.allows(i, j)) continue;
      some = true;
      window.left = std::max(window.left, i + shift - j);
      window.right = std::max(window.right, j - i - shift);
    }
  }
  std::vector<Mask> masks = {Mask(), Mask({CausalMask{}})};
  if (some) masks.push_back(Mask({window}));
  return masks;
}

bool same_pairs(const Mask& a, const Mask& b) {
  for (std::int64_t i = 0; i < a.q_tokens(); ++i) {
    for (std::int64_t j = 0; j < a.kv_tokens(); ++j) {
      if (a.allows(i, j) != b.allows(i, j)) return false;
    }
  }
  return true;
}

}  // namespace

bool is_dense(const TensorView<const double>& view) {
  const Strides dense = dense_strides(view.extents);
  const auto same = [](std::int64_t extent, std::int64_t stride, std::int64_t wanted) {
    return extent <= 1 || stride == wanted;
  };
  return same(view.extents.batch, view.strides.batch, dense.batch) &&
         same(view.extents.heads, view.strides.head, dense.head) &&
         same(view.extents.tokens, view.strides.token, dense.token) &&
         same(view.extents.channels, view.strides.channel, dense.channel);
}

std::optional<Mask> plainer_mask(const Mask& mask, const MaskAbilities& can) {
  for (const Mask& plain : plain_masks(mask)) {
    if (plain.terms().empty() && !can.full) continue;
    Mask bound = plain.bind(mask.q_tokens(), mask.kv_tokens());
    if (same_pairs(bound, mask)) return bound;
  }
  return std::nullopt;
}

Problem as_read(const Capabilities& can, Problem problem) {
  if (can.has(Ability::bit_masks) || !problem.mask.has_bits()) return problem;
  if (std::optional<Mask> plainer = plainer_mask(problem.mask, can.masks)) {
    problem.mask = std::move(*plainer);
  }
  return problem;
}

Subject foreign_subject(Subject raw) {
  const auto given = std::make_shared<const Subject>(std::move(raw));
  Subject subject = *given;
  subject.can.add({Ability::foreign});
  subject.run = [given](const AttentionInput& input, const RunOptions& options) {
    return run_within(*given, input, options);
  };
  subject.profile = [given](const Problem& problem, const RunOptions& options) {
    NumericsProfile profile = given->profile(problem, options);
    if (!given->can.has(Ability::lse)) profile.u_lse = std::max(profile.u_lse, 0x1p-24);
    return profile;
  };
  return subject;
}

bool is_tried_unannounced(const Subject& subject, const std::string& law_id) {
  return subject.can.has(Ability::foreign) &&
         (law_id == "equals_reference" || law_id == "gradients_equal_reference" || law_id == "U");
}

std::uint64_t unannounced_seed() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32) ^ entropy();
}

}  // namespace ringlab::verify
