#include "property_tests/laws/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "property_tests/generators/draws.h"
#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

std::string text(const Extents& e) {
  return "(" + std::to_string(e.batch) + ", " + std::to_string(e.heads) + ", " +
         std::to_string(e.tokens) + ", " + std::to_string(e.channels) + ")";
}

// A subject that answers in another shape would be compared with the wrong rows; it is the
// environment's fault, not a broken law.
void check_output(const std::string& subject, const char* name, const Tensor<double>& got,
                  const Extents& wanted) {
  if (got.extents() == wanted) return;
  throw_environment_error({.where = subject + ", output " + name,
                           .expected = "shape " + text(wanted),
                           .actual = text(got.extents())});
}

Extents resized(Extents e, std::int64_t Extents::*side, const Indices& from) {
  e.*side = static_cast<std::int64_t>(from.size());
  return e;
}

}  // namespace

Trial make_trial(const Case& c) { return {make_problem(c), make_options(c), make_tensors(c)}; }

RunResult run_checked(const Subject& subject, const AttentionInput& input,
                      const RunOptions& options) {
  RunResult result = subject.run(input, options);
  check_output(subject.name, "o", result.output.out, input.problem.shape.out());
  check_output(subject.name, "lse", result.output.lse, input.problem.shape.lse());
  return result;
}

RunResult run_trial(const Subject& subject, const Trial& trial) {
  return run_checked(subject, trial.input(), trial.options);
}

AttentionOutput attend(const Subject& subject, const Trial& trial) {
  return run_trial(subject, trial).output;
}

// The answer and its bounds are computed before the subject is asked: they depend on nothing
// that it says but its profile.
Judgement judge(const Subject& subject, const Trial& trial) {
  const AttentionInput input = trial.input();
  Judgement judgement{.exact = exact_forward(input), .allowed = {}};
  judgement.allowed =
      forward_tolerance(input, judgement.exact, subject.profile(trial.problem, trial.options));
  return judgement;
}

ExactForward sufficient_forward(const AttentionInput& input, const ExactOptions& options) {
  return input.problem.dtype == DType::f64 ? exact_forward(input, options)
                                           : fast_forward(input, options);
}

Tensor<double> value_errors(const Subject& subject, const Trial& trial) {
  const NumericsProfile profile = subject.profile(trial.problem, trial.options);
  const Tensor<double>& v = trial.data.v;
  return mapped(v, [&](double x, auto b, auto h, auto t, auto) {
    double largest = 0;
    for (std::int64_t c = 0; c < v.extents().channels; ++c) {
      largest = std::max(largest, std::abs(v(b, h, t, c)));
    }
    // A value smaller than any product is promised to be may be read as zero.
    const double flushed = std::abs(x) < profile.product_underflow ? std::abs(x) : 0;
    return flushed + wire_error(profile, std::abs(x), largest) + profile.u_product * std::abs(x) +
           factor_underflow(profile);
  });
}

// Results that were stored between merges are rounded once more each time; merged pairs carry the
// error of their weights besides. Nothing else would differ where the answer is a value itself.
Tensor<double> merging_errors(const Subject& subject, const Trial& trial, double largest_score) {
  const NumericsProfile profile = subject.profile(trial.problem, trial.options);
  const double stored = profile.u_partial * static_cast<double>(profile.max_rescales + 1);
  const double relative = stored + merge_error(profile, largest_score, trial.shape().kv_tokens);
  const double absolute = stored > 0 ? profile.product_underflow : 0;
  return mapped(trial.data.v, [&](double v, auto...) {
    const double error = relative > 0 ? relative * std::abs(v) + absolute : 0;
    // An exact answer is not rounded either: zero stays zero.
    return error > 0 ? error + half_ulp(profile.out_dtype, std::abs(v) + error) : 0;
  });
}

// True where nothing of the answer stands out of its bounds: a subject that returns zeros would
// pass, so the case says nothing.
bool zeros_would_pass(const Judgement& judgement) {
  bool has_visible_row = false;
  bool has_clear_value = false;
  const Tensor<double>& out = judgement.exact.out;
  for_each_index(out.extents(), [&](auto b, auto h, auto t, auto c) {
    // An empty row is zero by right.
    if (judgement.exact.lse(b, h, t, 0) == -std::numeric_limits<double>::infinity()) return;
    has_visible_row = true;
    has_clear_value |= std::abs(out(b, h, t, c)) > judgement.allowed.out(b, h, t, c);
  });
  return has_visible_row && !has_clear_value;
}

std::int64_t Pairs::count(std::int64_t i) const {
  // (queries, keys), row by row.
  const auto row = bits.begin() + static_cast<std::ptrdiff_t>(i * keys);
  return std::accumulate(row, row + static_cast<std::ptrdiff_t>(keys), std::int64_t{0});
}

Pairs make_pairs(std::int64_t queries, std::int64_t keys,
                 const std::function<bool(std::int64_t, std::int64_t)>& visible) {
  Pairs pairs{queries, keys, {}};
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) pairs.bits.push_back(visible(i, j) ? 1 : 0);
  }
  return pairs;
}

Pairs visible_pairs(const Problem& problem) {
  return make_pairs(problem.shape.q_tokens, problem.shape.kv_tokens,
                    [&](std::int64_t i, std::int64_t j) { return problem.mask.allows(i, j); });
}

// Any mask becomes a bit matrix, so that keys can be reordered, left out or repeated.
void use_pairs(Problem& problem, const Pairs& pairs) {
  problem.shape.q_tokens = pairs.queries;
  problem.shape.kv_tokens = pairs.keys;
  BitMask bits{pairs.queries, pairs.keys, pairs.bits, "pairs"};
  problem.mask = Mask({std::move(bits)}).bind(pairs.queries, pairs.keys);
}

// Sums have 64 bits of mantissa: more than the scores that they are compared with.
double score(const Trial& trial, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  long double dot = 0;
  for (std::int64_t c = 0; c < trial.shape().head_dim; ++c) {
    dot += static_cast<long double>(trial.data.q(b, h, i, c)) *
           trial.data.k(b, h / trial.group(), j, c);  // grouped heads share a K/V head
  }
  return static_cast<double>(trial.problem.scale * dot);
}

Indices in_order(std::int64_t count) {
  Indices order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Indices shuffled(std::int64_t count, std::uint64_t seed) {
  Indices order = in_order(count);
  Draws(seed, {count}).shuffle(order);
  return order;
}

Tensor<double> pick_tokens(const Tensor<double>& x, const Indices& from) {
  Tensor<double> y(resized(x.extents(), &Extents::tokens, from));
  return mapped(y, [&](double, auto b, auto h, auto t, auto c) {
    return x(b, h, from[static_cast<std::size_t>(t)], c);
  });
}

Tensor<double> pick_heads(const Tensor<double>& x, const Indices& from) {
  Tensor<double> y(resized(x.extents(), &Extents::heads, from));
  return mapped(y, [&](double, auto b, auto h, auto t, auto c) {
    return x(b, from[static_cast<std::size_t>(h)], t, c);
  });
}

Tensor<double> pick_channels(const Tensor<double>& x, const Indices& from) {
  Tensor<double> y(resized(x.extents(), &Extents::channels, from));
  return mapped(y, [&](double, auto b, auto h, auto t, auto c) {
    return x(b, h, t, from[static_cast<std::size_t>(c)]);
  });
}

Tensor<double> pick_batches(const Tensor<double>& x, const Indices& from) {
  Tensor<double> y(resized(x.extents(), &Extents::batch, from));
  return mapped(y, [&](double, auto b, auto h, auto t, auto c) {
    return x(from[static_cast<std::size_t>(b)], h, t, c);
  });
}

Trial with_keys(const Trial& trial, const Indices& from) {
  Trial changed = trial;
  const Pairs visible = visible_pairs(trial.problem);
  // Visibility moves along with the keys: key t of the new trial is key from[t] of the old one.
  use_pairs(changed.problem, make_pairs(visible.queries, static_cast<std::int64_t>(from.size()),
                                        [&](std::int64_t i, std::int64_t t) {
                                          return visible(i, from[static_cast<std::size_t>(t)]);
                                        }));
  changed.data.k = pick_tokens(trial.data.k, from);
  changed.data.v = pick_tokens(trial.data.v, from);
  return changed;
}

Tensor<double> mapped(const Tensor<double>& x, const ElementMap& value) {
  Tensor<double> y(x.extents());
  for_each_index(x.extents(), [&](auto b, auto h, auto t, auto c) {
    y(b, h, t, c) = value(x(b, h, t, c), b, h, t, c);
  });
  return y;
}

Tensor<double> with_channel(const Tensor<double>& x, std::int64_t channel,
                            const ChannelMap& value) {
  return mapped(x, [&](double old, auto b, auto h, auto t, auto c) {
    return c == channel ? value(b, h, t) : old;
  });
}

Tensor<double> scaled(const Tensor<double>& x, double factor) {
  return mapped(x, [&](double value, auto...) { return value * factor; });
}

Tensor<double> added(const Tensor<double>& x, const Tensor<double>& y) {
  return mapped(
      x, [&](double value, auto b, auto h, auto t, auto c) { return value + y(b, h, t, c); });
}

Tensor<double> random_integers(const Extents& extents, std::int64_t limit, std::uint64_t seed) {
  return mapped(Tensor<double>(extents), [&](double, auto b, auto h, auto t, auto c) {
    // A stream of draws for each place, so that values do not depend on the extents.
    return static_cast<double>(Draws(seed, {b, h, t, c}).between(-limit, limit));
  });
}

}  // namespace ringlab::verify
