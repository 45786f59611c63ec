// Mistakes in how the softmax and the products are differentiated.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "property_tests/diagnosis/gradients/gradient_hypotheses.h"

namespace ringlab::verify {
namespace {

/// Gives each row the delta of the row before it, in the order of a rank's (batch, heads, queries).
void take_delta_of_the_row_before(GradientModel& m) {
  const Tensor<double> right = m.delta;
  const RunOptions& options = m.forward.trial.options;
  const Shape& shape = m.forward.shape();
  const Layout layout = make_layout(options, shape.q_tokens, options.q_layout);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    double before = 0;
    bool first = true;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t h = 0; h < shape.q_heads; ++h) {
        for (const std::int64_t i : layout.positions(rank).to_list()) {
          m.delta(b, h, i, 0) = std::exchange(first, false) ? right(b, h, i, 0) : before;
          before = right(b, h, i, 0);
        }
      }
    }
  }
}

/// Sums delta over whole vectors of channels only.
void drop_tail_of_delta(GradientModel& m, std::int64_t vector) {
  const std::int64_t whole = m.forward.shape().v_dim / vector * vector;
  m.delta = mapped(m.delta, [&](double, auto b, auto h, auto i, auto) {
    double sum = 0;
    for (std::int64_t c = 0; c < whole; ++c) sum += m.dout(b, h, i, c) * m.out(b, h, i, c);
    return sum;
  });
}

/// P recomputed with another lse; P is at most `most`.
GradientHypothesis with_lse(Suspect suspect, double (*lse)(double), double most) {
  return before_ds(std::move(suspect), [=](GradientModel& m) {
    for (double& x : m.lse.values()) x = lse(x);
    weigh_again(m);
    for (double& p : m.p.values()) p = std::min(p, most);
  });
}

/// Lets the backward pass see `j <= i + 1`: one key too many, although lse comes from the right
/// ones, so that weights no longer sum to 1.
void sees_one_ahead(GradientModel& m) {
  const Mask mask = m.forward.trial.problem.mask;
  see_pairs(m.forward,
            [&](auto i, auto j) { return mask.allows(i, j) || (j > 0 && mask.allows(i, j - 1)); });
  weigh_again(m);
}

void sees_one_less(GradientModel& m) {
  const Mask mask = m.forward.trial.problem.mask;
  see_pairs(m.forward,
            [&](auto i, auto j) { return mask.allows(i, j) && j + 1 < mask.interval(i).end; });
  weigh_again(m);
}

/// dS summed over the first query head of each group only.
void keep_first_of_group(GradientModel& m, Tensor<double>& x) {
  const std::int64_t group = m.forward.trial.group();
  for_each_pair(m.forward, [&](auto b, auto h, auto i, auto j) {
    if (h % group != 0) x(b, h, i, j) = 0;
  });
}

std::vector<GradientHypothesis> of_the_softmax() {
  return {
      before_ds({"backward.delta_off_by_one_percent", "D is one percent too large where lse > 1"},
                [](GradientModel& m) {
                  m.delta = mapped(m.delta, [&](double x, auto b, auto h, auto i, auto) {
                    return m.lse(b, h, i, 0) > 1 ? x * 1.01 : x;
                  });
                }),
      before_ds({"backward.delta_of_the_row_before", "D of the row before is subtracted"},
                take_delta_of_the_row_before),
      with_lse(
          {"backward.lse_too_small", "P is recomputed with an lse that is too small by 0.01"},
          [](double lse) { return lse - 0.01; }, 1),
      with_lse(
          {"backward.lse_in_another_base",
           "P is recomputed from scores in base 2 and an lse in base e"},
          [](double lse) { return lse * std::numbers::ln2; }, HUGE_VAL),
      before_ds({"backward.sees_one_ahead", "the backward pass sees one key too many"},
                sees_one_ahead),
      before_ds({"backward.sees_one_less", "the backward pass sees one key too few"},
                sees_one_less),
      before_ds({"backward.cap_not_differentiated",
                 "gradients go on as if scores had not been soft-capped"},
                [](GradientModel& m) {
                  for (double& x : m.steepness.values()) x = 1;
                }),
      in_sums({"backward.dropped_pairs_lose_delta", "pairs that were dropped have dS = 0"},
              [](GradientModel& m) {
                for_each_pair(m.forward, [&](auto b, auto h, auto i, auto j) {
                  if (m.factor(b, h, i, j) != 0) return;
                  m.ds_of_dq(b, h, i, j) = m.ds_of_dk(b, h, i, j) = 0;
                });
              }),
      in_sums(
          {"backward.dropped_pairs_in_dv", "values get a gradient from queries that dropped them"},
          [](GradientModel& m) { m.p_of_dv = m.p; }),
      in_sums(
          {"backward.dp_not_dropped", "pairs that were dropped get the gradient of their weight"},
          [](GradientModel& m) {
            for_each_pair(m.forward, [&](auto b, auto h, auto i, auto j) {
              const double ds = m.p(b, h, i, j) * (m.dp(b, h, i, j) - m.delta(b, h, i, 0)) *
                                m.steepness(b, h, i, j);
              m.ds_of_dq(b, h, i, j) = m.ds_of_dk(b, h, i, j) = ds;
            });
          })};
}

void add_tails_of_delta(std::vector<GradientHypothesis>& all) {
  for (const std::int64_t vector : {4, 8, 16, 32, 64}) {
    const std::string length = std::to_string(vector);
    all.push_back(before_ds({"backward.delta_without_tail_of_" + length,
                             "D lacks the channels of o·dO that do not fill a vector of " + length},
                            [=](GradientModel& m) { drop_tail_of_delta(m, vector); }));
  }
}

std::vector<GradientHypothesis> of_the_products() {
  return {in_sums({"backward.group_sum_missing_in_dk",
                   "only the first query head of a group adds to the shared head's dK"},
                  [](GradientModel& m) { keep_first_of_group(m, m.ds_of_dk); }),
          in_sums({"backward.group_sum_missing",
                   "only the first query head of a group adds to the shared head's dK and dV"},
                  [](GradientModel& m) {
                    keep_first_of_group(m, m.ds_of_dk);
                    keep_first_of_group(m, m.p_of_dv);
                  }),
          in_results({"backward.dk_and_dv_exchanged", "dK is returned as dV and dV as dK"},
                     [](GradientPrediction& p, const Model&) {
                       if (!(p.gradients.dk.extents() == p.gradients.dv.extents())) return;
                       std::swap(p.gradients.dk, p.gradients.dv);
                       std::swap(p.allowed.dk, p.allowed.dv);
                     })};
}

}  // namespace

std::vector<GradientHypothesis> score_gradient_mistakes() {
  std::vector<GradientHypothesis> all = of_the_softmax();
  add_tails_of_delta(all);
  for (GradientHypothesis& one : of_the_products()) all.push_back(std::move(one));
  return all;
}

}  // namespace ringlab::verify
