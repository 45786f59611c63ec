// Answers on parts of the keys merge into the answer on all of them.
#include <algorithm>
#include <cmath>
#include <string>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/ranks/distribution.h"
#include "property_tests/laws/two_runs.h"
#include "reference/core/state.h"

namespace ringlab::verify {
namespace {

/// The layout with one more rank that holds nothing, put in at `place`.
Layout with_empty_rank(const Layout& layout, int place) {
  std::vector<Positions> parts;
  for (int rank = 0; rank < layout.ranks(); ++rank) parts.push_back(layout.positions(rank));
  parts.insert(parts.begin() + place, Positions());
  return Layout::from_parts(std::move(parts));
}

/// Holds because an empty chunk is the identity of the merge, so a ring keeps its bits. A tree of
/// merges changes its shape with the number of leaves, and keeps the bound. Finds NaN from
/// -inf - (-inf), and loops that stop at the first empty chunk.
LawResult an_empty_rank_changes_nothing(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const int place = static_cast<int>(c.seed % static_cast<std::uint64_t>(c.ranks + 1));
  RunOptions longer = trial.options;
  longer.q_layout = with_empty_rank(make_layout(longer, c.shape.q_tokens, {}), place);
  longer.kv_layout = with_empty_rank(make_layout(longer, c.shape.kv_tokens, {}), place);
  longer.ranks = c.ranks + 1;
  const std::string what = "one more rank, holding nothing, as number " + std::to_string(place);
  if (!subject.can.has(Ability::ring_traffic) || !subject.can.has(Ability::deterministic)) {
    return within_both_bounds(what, run_with_bounds(subject, trial.input(), longer),
                              run_with_bounds(subject, trial.input(), trial.options));
  }
  return same_rows(what, subject.run(trial.input(), longer).output,
                   subject.run(trial.input(), trial.options).output);
}

/// The trial with every key outside [begin, end) hidden.
Trial part_of(const Trial& trial, const Pairs& all, std::int64_t begin, std::int64_t end) {
  Trial part = trial;
  use_pairs(part.problem, make_pairs(all.queries, all.keys, [&](std::int64_t i, std::int64_t j) {
              return all(i, j) && j >= begin && j < end;
            }));
  return part;
}

/// Cuts the keys in up to four parts, some of them empty.
std::vector<BoundedAnswer> answers_on_parts(const Subject& subject, const Trial& trial,
                                            Draws& draws) {
  const Pairs all = visible_pairs(trial.problem);
  std::vector<BoundedAnswer> answers;
  std::int64_t begin = 0;
  for (int part = 0; part < 4; ++part) {
    const std::int64_t end = part == 3 ? all.keys : draws.between(begin, all.keys);
    const Trial hidden = part_of(trial, all, begin, end);
    answers.push_back(run_with_bounds(subject, hidden.input(), trial.options));
    begin = end;
  }
  return answers;
}

/// A finished answer of one row as a running state: maximum lse, sum 1, acc = out.
struct FinishedRow {
  SoftmaxState<double> state;
  std::vector<double> acc;
};

FinishedRow row_state(const AttentionOutput& answer, std::int64_t b, std::int64_t h,
                      std::int64_t t) {
  FinishedRow row;
  const double lse = answer.lse(b, h, t, 0);
  row.state = {lse, std::isinf(lse) ? 0.0 : 1.0};
  for (std::int64_t c = 0; c < answer.out.extents().channels; ++c) {
    row.acc.push_back(answer.out(b, h, t, c));
  }
  return row;
}

/// Merges two neighbours or strangers, picked at random, until one is left.
FinishedRow merged_in_random_order(std::vector<FinishedRow> rows, Draws& draws) {
  while (rows.size() > 1) {
    const auto last = static_cast<std::int64_t>(rows.size()) - 1;
    std::swap(rows[static_cast<std::size_t>(draws.below(last))], rows.back());
    const FinishedRow other = rows.back();
    rows.pop_back();
    FinishedRow& into = rows[static_cast<std::size_t>(draws.below(last))];
    merge_state(into.state, into.acc.data(), other.state, other.acc.data(),
                static_cast<std::int64_t>(into.acc.size()));
  }
  return rows.front();
}

/// Errors of the parts carry over with their weights; an error of lse changes the weights
/// themselves, by a factor within e^±delta, and with them a mean of values that lie within
/// 2 · max|o| of each other.
void widen(ForwardTolerance& allowed, const std::vector<BoundedAnswer>& parts, std::int64_t b,
           std::int64_t h, std::int64_t t) {
  double delta = 0;
  for (const BoundedAnswer& part : parts) delta = std::max(delta, part.tolerance.lse(b, h, t, 0));
  allowed.lse(b, h, t, 0) = delta + 0x1p-40;
  for (std::int64_t c = 0; c < allowed.out.extents().channels; ++c) {
    double worst = 0, largest = 0;
    for (const BoundedAnswer& part : parts) {
      worst = std::max(worst, part.tolerance.out(b, h, t, c));
      largest = std::max(largest, std::abs(part.output.out(b, h, t, c)) + worst);
    }
    allowed.out(b, h, t, c) = worst + (std::expm1(2 * delta) + 0x1p-40) * 2 * largest;
  }
}

BoundedAnswer merged(const std::vector<BoundedAnswer>& parts, Draws& draws) {
  BoundedAnswer whole = parts.front();
  const std::int64_t channels = whole.output.out.extents().channels;
  for_each_index(whole.output.lse.extents(), [&](auto b, auto h, auto t, auto) {
    std::vector<FinishedRow> rows;
    for (const BoundedAnswer& part : parts) rows.push_back(row_state(part.output, b, h, t));
    FinishedRow row = merged_in_random_order(std::move(rows), draws);
    whole.output.lse(b, h, t, 0) = finish_state(row.state, row.acc.data(), channels);
    for (std::int64_t c = 0; c < channels; ++c) {
      whole.output.out(b, h, t, c) = row.acc[static_cast<std::size_t>(c)];
    }
    widen(whole.tolerance, parts, b, h, t);
  });
  return whole;
}

/// Holds because the running triple is a monoid (docs/decisions/0001-running-triple.md): the lse of
/// a part is all that merging needs. Finds lse that is right for whole rows and wrong for parts.
LawResult parts_merge_into_the_whole(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  Draws draws(c.seed);
  const std::vector<BoundedAnswer> parts = answers_on_parts(subject, trial, draws);
  return within_both_bounds("answers on four parts of the keys, merged in a random order",
                            merged(parts, draws),
                            run_with_bounds(subject, trial.input(), trial.options));
}

}  // namespace

std::vector<Law> merging_laws() {
  return {
      {.id = "P62",
       .name = "a_rank_that_holds_nothing_changes_nothing",
       .statement =
           "The empty state is the identity of the merge: one more, empty rank changes no answer.",
       .shape_case = several_ranks,
       .needs = {Ability::many_ranks},
       .check = an_empty_rank_changes_nothing},
      {.id = "P63",
       .name = "answers_on_parts_of_the_keys_merge_into_the_whole_answer",
       .statement =
           "(o, lse) on a partition of the keys, merged in any order, is the answer on all keys.",
       .shape_case = with_tokens,
       .check = parts_merge_into_the_whole},
  };
}

}  // namespace ringlab::verify
