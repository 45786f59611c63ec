#include "property_tests/laws/two_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "property_tests/generators/draws.h"

namespace ringlab::verify {
namespace {

LawResult within(const std::string& name, const Tensor<double>& got, const Tensor<double>& want,
                 const Tensor<double>& got_allowed, const Tensor<double>& want_allowed) {
  // Each run may be off by its own bound, in opposite directions.
  return agrees(name, got, want, added(got_allowed, want_allowed));
}

ForwardTolerance of_both_runs(const ForwardTolerance& once) {
  return {added(once.out, once.out), added(once.lse, once.lse)};
}

Tensor<double> rows_of(const Tensor<double>& tensor, std::int64_t first, std::int64_t count) {
  Extents extents = tensor.extents();
  extents.tokens = count;
  Tensor<double> rows(extents);
  for_each_index(extents, [&](auto b, auto h, auto t, auto c) {
    rows(b, h, t, c) = tensor(b, h, first + t, c);
  });
  return rows;
}

/// The largest score of a pair, of any head.
double largest_score(const Trial& trial, std::int64_t row, std::int64_t key) {
  double largest = 0;
  for (std::int64_t b = 0; b < trial.shape().batch; ++b) {
    for (std::int64_t h = 0; h < trial.shape().q_heads; ++h) {
      largest = std::max(largest, std::abs(score(trial, b, h, row, key)));
    }
  }
  return largest;
}

}  // namespace

LawResult same_at(const std::string& name, const Tensor<double>& got, const Tensor<double>& want,
                  const RowFilter& tokens, const Tensor<double>* allowed) {
  if (!(got.extents() == want.extents())) return broken("the shapes of " + name + " differ");
  LawResult result;
  for_each_index(got.extents(), [&](auto b, auto h, auto t, auto c) {
    // The first difference only; +0 and -0 are the same, and NaN is never the same as anything.
    if (result.outcome == Outcome::broken || (tokens && !tokens(t))) return;
    const double now = got(b, h, t, c), before = want(b, h, t, c);
    const double most = allowed ? (*allowed)(b, h, t, c) : 0;
    const double moved = now == before ? 0 : std::abs(now - before);  // of equal infinities, too
    if (allowed && std::isfinite(before) && std::abs(before) + most > 0) {
      result.bounds.add({1, std::abs(before) > most, std::isinf(most), std::isinf(most)});
    }
    if (std::isfinite(moved) && moved <= most) return;
    const BoundCounts bounds = result.bounds;
    result =
        broken(fmt::format("{}[batch {}, head {}, token {}, channel {}] became {:.17g}, was "
                           "{:.17g}, and must be {}",
                           name, b, h, t, c, now, before,
                           allowed ? fmt::format("within {:.6g}", most) : "the same bits"));
    result.bounds = bounds;
    result.worst = Element{name, b, h, t, c};
  });
  return result;
}

LawResult same_rows(const std::string& what, const AttentionOutput& got,
                    const AttentionOutput& want, const RowFilter& rows,
                    const std::optional<ForwardTolerance>& allowed) {
  LawResult result =
      all_held({same_at("o", got.out, want.out, rows, allowed ? &allowed->out : nullptr),
                same_at("lse", got.lse, want.lse, rows, allowed ? &allowed->lse : nullptr)});
  if (result.outcome == Outcome::broken) result.message = what + ": " + result.message;
  return result;
}

std::optional<ForwardTolerance> allowed_between_runs(const Subject& subject, const Trial& trial) {
  if (subject.can.has(Ability::deterministic)) return std::nullopt;
  return of_both_runs(judge(subject, trial).allowed);
}

bool keeps_bits_beside(const Subject& subject, double value) {
  return subject.can.has(Ability::deterministic) &&
         (subject.can.has(Ability::same_bits_beside_nan) || std::isfinite(value));
}

std::optional<ForwardTolerance> allowed_beside(const Subject& subject, const Trial& trial,
                                               double value) {
  if (keeps_bits_beside(subject, value)) return std::nullopt;
  return of_both_runs(judge(subject, trial).allowed);
}

BoundedAnswer run_with_bounds(const Subject& subject, const AttentionInput& input,
                              const RunOptions& options) {
  const ExactForward exact = exact_forward(input);
  return {subject.run(input, options).output,
          forward_tolerance(input, exact, subject.profile(input.problem, options))};
}

LawResult within_both_bounds(const std::string& what, const BoundedAnswer& got,
                             const BoundedAnswer& want) {
  LawResult result = all_held(
      {within("o", got.output.out, want.output.out, got.tolerance.out, want.tolerance.out),
       within("lse", got.output.lse, want.output.lse, got.tolerance.lse, want.tolerance.lse)});
  if (result.outcome == Outcome::broken) result.message = what + ": " + result.message;
  return result;
}

// A view into the same memory: no token is copied, and strides stay.
TensorView<const double> token_slice(TensorView<const double> view, std::int64_t first,
                                     std::int64_t count) {
  if (view.data != nullptr && count > 0) view.data += first * view.strides.token;
  view.extents.tokens = count;
  return view;
}

BoundedAnswer row_slice(const BoundedAnswer& answer, std::int64_t first, std::int64_t count) {
  return {
      {rows_of(answer.output.out, first, count), rows_of(answer.output.lse, first, count)},
      {rows_of(answer.tolerance.out, first, count), rows_of(answer.tolerance.lse, first, count)}};
}

void fill_tokens(Tensor<double>& tensor, std::int64_t begin, std::int64_t end, double value) {
  for_each_index(tensor.extents(), [&](auto b, auto h, auto t, auto c) {
    if (t >= begin && t < end) tensor(b, h, t, c) = value;
  });
}

std::vector<double> poisons(const Subject& subject) {
  // A value that shows when it is read; NaN shows even with weight 0.
  std::vector<double> values{1024.0};
  if (subject.can.has(Ability::masked_may_be_nan))
    values.push_back(std::numeric_limits<double>::quiet_NaN());
  return values;
}

LawResult all_held(const std::vector<LawResult>& results) {
  LawResult worst = held();
  for (const LawResult& result : results) {
    worst = both(std::move(worst), result);
    if (worst.outcome != Outcome::held) return worst;
  }
  return worst;
}

std::int64_t first_position(const Case& c) { return c.shape.kv_tokens - c.shape.q_tokens; }

LawResult unchanged_under(const Subject& subject, const Case& c, const std::string& what,
                          const std::function<void(AttentionTensors&, double)>& overwrite,
                          const RowFilter& rows) {
  const Trial base = make_trial(c);
  const AttentionOutput before = attend(subject, base);
  std::vector<LawResult> results;
  for (const double poison : poisons(subject)) {
    Trial changed = base;
    overwrite(changed.data, poison);
    results.push_back(same_rows(fmt::format("{} = {}", what, poison), attend(subject, changed),
                                before, rows, allowed_beside(subject, base, poison)));
  }
  return all_held(results);
}

LawResult row_is_value(const Subject& subject, const Trial& trial, const AttentionOutput& got,
                       const RowAndKey& only) {
  Extents row = got.out.extents();
  row.tokens = 1;
  const auto of_key = [&](const Tensor<double>& tensor) {
    return mapped(Tensor<double>(row), [&](double, auto b, auto h, auto, auto channel) {
      return tensor(b, h / trial.group(), only.key, channel);
    });
  };
  const Tensor<double> allowed =
      subject.can.has(Ability::powers_next_to_0_are_1)
          ? of_key(added(value_errors(subject, trial),
                         merging_errors(subject, trial, largest_score(trial, only.row, only.key))))
          : rows_of(judge(subject, trial).allowed.out, only.row, 1);
  return matches(fmt::format("o of row {}, which sees only key {},", only.row, only.key),
                 rows_of(got.out, only.row, 1), of_key(trial.data.v), allowed);
}

Case several_ranks(Case c) {
  c.ranks = std::max(c.ranks, 2);
  return with_tokens(c);
}

Layout random_layout(std::int64_t tokens, int ranks, std::uint64_t seed) {
  Draws draws(seed);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(ranks), 0);
  for (std::size_t rank = 0; rank + 1 < lengths.size(); ++rank) {
    lengths[rank] = draws.chance(25) ? 0 : draws.between(0, tokens);
    tokens -= lengths[rank];
  }
  lengths.back() = tokens;
  draws.shuffle(lengths);
  return Layout::with_lengths(lengths);
}

}  // namespace ringlab::verify
