// Mistakes of merging partial answers, in a tree over the ranks' chunks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"
#include "property_tests/laws/findings.h"

namespace ringlab::verify {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr double kAnyNumber = std::numeric_limits<double>::infinity();
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// lse of the visible keys of each chunk; -inf for none.
std::vector<double> chunk_lses(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i) {
  std::vector<double> lses;
  for (const auto& chunk : key_pieces(model, i, KeyOrder::by_owner, Piece::chunk)) {
    double top = kNothing, sum = 0;
    for (const std::int64_t j : chunk) {
      if (model.in_sum(b, h, i, j) != 0) top = std::max(top, model.score(b, h, i, j));
    }
    for (const std::int64_t j : chunk) {
      if (model.in_sum(b, h, i, j) != 0) sum += std::exp(model.score(b, h, i, j) - top);
    }
    lses.push_back(sum == 0 ? kNothing : top + std::log(sum));
  }
  return lses;
}

/// Numbers of a row that are alike for all channels.
struct MergedRow {
  double out, out_allowed, lse, lse_allowed;
};
void set_row(Prediction& p, std::int64_t b, std::int64_t h, std::int64_t i, const MergedRow& row) {
  for (std::int64_t c = 0; c < p.output.out.extents().channels; ++c) {
    p.output.out(b, h, i, c) = row.out;
    p.allowed.out(b, h, i, c) = row.out_allowed;
  }
  p.output.lse(b, h, i, 0) = row.lse;
  p.allowed.lse(b, h, i, 0) = row.lse_allowed;
}

/// Merges with lse + log(1 + e^(other - lse)): infinite when the other is far above.
void add_logs_without_maximum(Prediction& prediction, const Model& model) {
  const double most = model.trial.problem.dtype == DType::f64 ? 709.5 : 88.6;
  // Beyond `most` e^x is infinite in the type of the sums; within half a nat of it nothing is said.
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    std::vector<double> parts = chunk_lses(model, b, h, i);
    bool overflows = false, unsure = false;
    merge_in_a_tree(parts, [&](double& mine, double theirs, bool is_last) {
      const double rise = mine == kNothing || theirs == kNothing ? 0 : theirs - mine;
      if (rise > most + 0.5 && is_last) overflows = true;
      if ((rise > most + 0.5 && !is_last) || std::abs(rise - most) <= 0.5) unsure = true;
      mine = logaddexp(mine, theirs);
    });
    if (unsure) set_row(prediction, b, h, i, {0, kAnyNumber, 0, kAnyNumber});
    if (overflows && !unsure) set_row(prediction, b, h, i, {0, 0, kAnyNumber, 0});
  });
}

/// Tests for a row that saw nothing in the end: by its maximum, or by its sum, which NaN spoils.
enum class EmptyBy { maximum, sum };

/// Takes e^(max - new max) of two parts that have both seen nothing: -inf - (-inf) is NaN.
void subtract_infinities(Prediction& prediction, const Model& model, EmptyBy empty_by) {
  struct Part {
    double lse;
    bool spoiled = false;
  };
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    std::vector<Part> parts;
    for (const double lse : chunk_lses(model, b, h, i)) parts.push_back({lse});
    merge_in_a_tree(parts, [](Part& mine, const Part& theirs, bool) {
      // An empty left part has weight e^-inf = 0, which does not heal NaN.
      mine.spoiled |= theirs.spoiled || (mine.lse == kNothing && theirs.lse == kNothing);
      mine.lse = logaddexp(mine.lse, theirs.lse);
    });
    const Part& whole = parts.front();
    const bool is_empty = whole.lse == kNothing && empty_by == EmptyBy::maximum;
    if (!whole.spoiled || is_empty) return;
    set_row(prediction, b, h, i, {kUndefined, 0, kUndefined, 0});
  });
}

}  // namespace

std::vector<Hypothesis> merge_mistakes() {
  std::vector<Hypothesis> all = {
      by_result({"merge.log_of_one_plus_exp",
                 "lse + log(1 + e^(other - lse)) overflows when the other part is far above"},
                add_logs_without_maximum)};
  for (const EmptyBy empty_by : {EmptyBy::maximum, EmptyBy::sum}) {
    all.push_back(by_result(
        {"merge.infinity_minus_infinity",
         "two parts in which a query sees nothing give (-inf) - (-inf)"},
        [empty_by](Prediction& p, const Model& m) { subtract_infinities(p, m, empty_by); }));
  }
  return all;
}

}  // namespace ringlab::verify
