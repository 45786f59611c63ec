#include "property_tests/sampled_check.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "reference/attention/exact.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

/// First and last row of all runs of all ranks, ascending.
std::vector<std::int64_t> borders_of(const Layout& queries) {
  std::set<std::int64_t> borders = {0, queries.tokens() - 1};
  for (int rank = 0; rank < queries.ranks(); ++rank) {
    for (const PositionRun& run : queries.positions(rank).runs()) {
      borders.insert(run.first);
      borders.insert(run.first + (run.count - 1) * run.stride);
    }
  }
  return {borders.begin(), borders.end()};
}

/// Chooses `count` of all rows evenly, the first and the last included from two on.
std::vector<std::int64_t> evenly(const std::vector<std::int64_t>& all, std::int64_t count) {
  const std::int64_t size = std::ssize(all);
  if (size <= count) return all;
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = count == 1 ? 0 : i * (size - 1) / (count - 1);
    chosen.push_back(all[static_cast<std::size_t>(at)]);
  }
  return chosen;
}

/// Rows between two chosen ones; the widest comes first, of equal ones the first.
struct Gap {
  std::int64_t first = 0, last = 0;
  friend bool operator<(const Gap& a, const Gap& b) {
    return a.last - a.first != b.last - b.first ? a.last - a.first < b.last - b.first
                                                : a.first > b.first;
  }
};

void fill_gaps(std::vector<std::int64_t>& rows, std::int64_t count) {
  std::priority_queue<Gap> gaps;
  for (std::size_t i = 1; i < rows.size(); ++i) gaps.push({rows[i - 1], rows[i]});
  while (std::ssize(rows) < count) {
    const Gap gap = gaps.top();
    const std::int64_t middle = gap.first + (gap.last - gap.first) / 2;
    gaps.pop();
    rows.push_back(middle);
    gaps.push({gap.first, middle});
    gaps.push({middle, gap.last});
  }
  std::ranges::sort(rows);
}

TensorView<const double> heads_of(const TensorView<const double>& whole, std::int64_t batch,
                                  std::int64_t first, std::int64_t count) {
  TensorView<const double> part = whole;
  part.data += whole.offset(batch, first, 0, 0);
  part.extents.batch = 1;
  part.extents.heads = count;
  return part;
}

/// The rows of `got` that belong to a group.
Tensor<double> part_of(const Tensor<double>& got, std::int64_t batch, std::int64_t first,
                       std::int64_t count) {
  Tensor<double> part({1, count, got.extents().tokens, got.extents().channels});
  const auto from = got.view().offset(batch, first, 0, 0);
  std::copy_n(got.values().begin() + from, part.size(), part.values().begin());
  return part;
}

/// Takes the comparison of one group into that of the whole.
void merge(TensorReport part, const SampledCheck& check, std::int64_t batch, std::int64_t head,
           TensorReport& whole) {
  WorstElement& worst = part.worst;
  worst.batch = batch;
  worst.head += head;
  worst.token = check.rows[static_cast<std::size_t>(worst.token)];
  if (whole.compared == 0 || worst.ratio > whole.worst.ratio) whole.worst = worst;
  whole.compared += part.compared;
  whole.failed += part.failed;
  whole.measured += part.measured;
  whole.telling += part.telling;
  whole.unbounded += part.unbounded;
  whole.infinite += part.infinite;
}

/// The `count` query heads from `first` as a problem of their own.
Problem problem_of(const Problem& whole, std::int64_t first, std::int64_t count) {
  Problem problem = whole;
  problem.shape.batch = problem.shape.kv_heads = 1;
  problem.shape.q_heads = count;
  std::vector<std::int64_t> heads(static_cast<std::size_t>(count));
  std::iota(heads.begin(), heads.end(), first);
  problem.modifiers = modifiers_of_heads(whole.modifiers, heads);
  return problem;
}

}  // namespace

Modifiers modifiers_of_heads(Modifiers modifiers, const std::vector<std::int64_t>& heads) {
  for (std::vector<double>* per_head : {&modifiers.alibi_slopes, &modifiers.sinks}) {
    if (per_head->empty()) continue;  // none stay none
    std::vector<double> kept;
    for (const std::int64_t head : heads)
      kept.push_back((*per_head)[static_cast<std::size_t>(head)]);
    *per_head = std::move(kept);
  }
  return modifiers;
}

// Dropped pairs depend on the numbers of batch and head, which differ in a group taken alone.
void refuse_dropout(const Problem& problem) {
  if (problem.modifiers.dropout == 0) return;
  throw_usage_error({.where = "check of some rows",
                     .expected = "a problem without dropout",
                     .actual = modifiers_text(problem.modifiers),
                     .hint = "Check all rows: --check"});
}

std::vector<std::int64_t> sample_rows(const Layout& queries, std::int64_t count) {
  count = std::min(count, queries.tokens());
  if (count < 1) return {};
  std::vector<std::int64_t> rows = evenly(borders_of(queries), count);
  fill_gaps(rows, count);
  return rows;
}

HeadGroupSource groups_of(const AttentionInput& input) {
  const std::int64_t group = input.problem.shape.q_heads / input.problem.shape.kv_heads;
  return [=, q = input.q, k = input.k, v = input.v](std::int64_t batch, std::int64_t kv_head) {
    return HeadGroup{.q = heads_of(q, batch, kv_head * group, group),
                     .k = heads_of(k, batch, kv_head, 1),
                     .v = heads_of(v, batch, kv_head, 1)};
  };
}

Report check_sampled(const SampledCheck& check, const HeadGroupSource& source,
                     const AttentionOutput& got) {
  refuse_dropout(check.problem);
  const Shape& shape = check.problem.shape;
  const std::int64_t rows = std::ssize(check.rows);
  check_extents("o of the rows to check", got.out.extents(),
                {shape.batch, shape.q_heads, rows, shape.v_dim});
  check_extents("lse of the rows to check", got.lse.extents(),
                {shape.batch, shape.q_heads, rows, 1});
  Report report{.tensors = {TensorReport{.tensor = "o", .worst = {}},
                            TensorReport{.tensor = "lse", .worst = {}}}};
  if (rows == 0) return report;  // an empty list would mean all rows, not none
  const ExactOptions options{.rows = check.rows, .threads = check.threads};
  const std::int64_t group = shape.q_heads / shape.kv_heads;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t g = 0; g < shape.kv_heads; ++g) {
      const HeadGroup tensors = source(b, g);
      const AttentionInput input{problem_of(check.problem, g * group, group), tensors.q, tensors.k,
                                 tensors.v};
      const ExactForward exact = exact_forward(input, options);
      const Report part = compare_forward(
          {part_of(got.out, b, g * group, group), part_of(got.lse, b, g * group, group)}, exact,
          forward_tolerance(input, exact, check.profile, options));
      for (std::size_t t = 0; t < report.tensors.size(); ++t) {
        merge(part.tensors[t], check, b, g * group, report.tensors[t]);
      }
    }
  }
  return report;
}

}  // namespace ringlab::verify
