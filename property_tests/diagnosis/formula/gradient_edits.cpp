// Single edits of dV = P^T dO, dP = dO V^T, D = dO . O, dS = P (dP - D), dQ = scale dS K and
// dK = scale dS^T Q (Dao 2023, section 3.1).
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/diagnosis/gradients/gradient_hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// The numbers of a pair that an edit may put in the place of others.
struct PairNumbers {
  double p, factor, dp, delta, steepness;

  double ds() const { return p * (factor * dp - delta) * steepness; }
};
using OfPair = double (*)(const PairNumbers&);

Tensor<double> over_pairs(const GradientModel& m, OfPair number) {
  return mapped(m.p, [&](double p, auto b, auto h, auto i, auto j) {
    if (m.forward.in_sum(b, h, i, j) == 0) return 0.0;
    return number(
        {p, m.factor(b, h, i, j), m.dp(b, h, i, j), m.delta(b, h, i, 0), m.steepness(b, h, i, j)});
  });
}

/// Edits of dS, for both of its sums or one of them.
void add_ds(std::vector<GradientHypothesis>& all) {
  struct Edit {
    const char *id, *words;
    OfPair ds;
  };
  const std::vector<Edit> edits = {
      {"no_delta", "dS = P dP: D, which is the derivative of the row sum, is not subtracted",
       [](const PairNumbers& n) { return n.p * n.factor * n.dp * n.steepness; }},
      {"delta_added", "D is added to dP, not subtracted",
       [](const PairNumbers& n) { return n.p * (n.factor * n.dp + n.delta) * n.steepness; }},
      {"ds_without_p", "dS lacks the factor P",
       [](const PairNumbers& n) { return (n.factor * n.dp - n.delta) * n.steepness; }},
      {"ds_of_p_twice", "dS has the factor P twice",
       [](const PairNumbers& n) { return n.p * n.ds(); }},
      {"delta_outside", "dS = P dP - D: the brackets are missing",
       [](const PairNumbers& n) { return (n.p * n.factor * n.dp - n.delta) * n.steepness; }},
      {"ds_of_the_diagonal", "dS = P (1 - P) dP: other keys of the row are not differentiated",
       [](const PairNumbers& n) { return n.p * (1 - n.p) * n.factor * n.dp * n.steepness; }},
      {"ds_negated", "dS = P (D - dP) has the wrong sign",
       [](const PairNumbers& n) { return -n.ds(); }}};
  struct Where {
    const char *id, *words;
    bool dq, dk;
  };
  for (const Edit& edit : edits) {
    for (const Where& where : {Where{"", "", true, true}, Where{"_in_dq", " in dQ", true, false},
                               Where{"_in_dk", " in dK", false, true}}) {
      all.push_back(in_sums(
          {std::string("backward.") + edit.id + where.id, std::string(edit.words) + where.words},
          [=](GradientModel& m) {
            const Tensor<double> ds = over_pairs(m, edit.ds);
            if (where.dq) m.ds_of_dq = ds;
            if (where.dk) m.ds_of_dk = ds;
          }));
    }
  }
}

/// Other weights of the sums than P of dV, and dS of dQ and dK.
void add_weights_of_sums(std::vector<GradientHypothesis>& all) {
  const auto add = [&](const char* id, const char* words, Tensor<double> GradientModel::*weights,
                       OfPair weight) {
    all.push_back(in_sums({std::string("backward.") + id, words},
                          [=](GradientModel& m) { m.*weights = over_pairs(m, weight); }));
  };
  const OfPair p = [](const PairNumbers& n) { return n.p * n.factor; };
  const OfPair dp = [](const PairNumbers& n) { return n.dp; };
  add("dq_of_p", "dQ is summed with P in place of dS", &GradientModel::ds_of_dq, p);
  add("dk_of_p", "dK is summed with P in place of dS", &GradientModel::ds_of_dk, p);
  add("dq_of_dp", "dQ is summed with dP in place of dS", &GradientModel::ds_of_dq, dp);
  add("dk_of_dp", "dK is summed with dP in place of dS", &GradientModel::ds_of_dk, dp);
  add("dv_of_dp", "dV is summed with dP in place of P", &GradientModel::p_of_dv, dp);
  add("dv_of_ds", "dV is summed with dS in place of P", &GradientModel::p_of_dv,
      [](const PairNumbers& n) { return n.ds(); });
  add("dv_of_p_squared", "dV is summed with P squared in place of P", &GradientModel::p_of_dv,
      [](const PairNumbers& n) { return n.p * n.p * n.factor; });
  add("dv_of_ones", "dV is summed without P", &GradientModel::p_of_dv,
      [](const PairNumbers&) { return 1.0; });
}

/// The tensor whose rows a sum goes over.
void add_rows(std::vector<GradientHypothesis>& all) {
  struct Sum {
    const char *id, *words;
    RowsOf GradientModel::*rows;
    RowsOf right;
  };
  const std::vector<std::pair<RowsOf, const char*>> tensors = {{RowsOf::q, "Q"},
                                                               {RowsOf::k, "K"},
                                                               {RowsOf::v, "V"},
                                                               {RowsOf::out, "O"},
                                                               {RowsOf::dout, "dO"}};
  for (const Sum& sum : {Sum{"dq", "dQ", &GradientModel::rows_of_dq, RowsOf::k},
                         Sum{"dk", "dK", &GradientModel::rows_of_dk, RowsOf::q},
                         Sum{"dv", "dV", &GradientModel::rows_of_dv, RowsOf::dout}}) {
    for (const auto& [rows, name] : tensors) {
      if (rows == sum.right) continue;
      all.push_back(in_sums({std::string("backward.") + sum.id + "_over_rows_of_" + name,
                             std::string(sum.words) + " is summed over rows of " + name},
                            [=, rows = rows](GradientModel& m) { m.*sum.rows = rows; }));
    }
  }
}

void add_scales(std::vector<GradientHypothesis>& all) {
  struct Edit {
    const char *id, *words;
    double dq, dk, dv;  ///< powers of the scale
  };
  for (const Edit& edit : {Edit{"dq_without_scale", "dQ lacks the scale of the scores", 0, 1, 0},
                           Edit{"dk_without_scale", "dK lacks the scale of the scores", 1, 0, 0},
                           Edit{"no_scale", "dQ and dK lack the scale of the scores", 0, 0, 0},
                           Edit{"dq_scaled_twice", "dQ is scaled twice", 2, 1, 0},
                           Edit{"dk_scaled_twice", "dK is scaled twice", 1, 2, 0},
                           Edit{"scaled_twice", "dQ and dK are scaled twice", 2, 2, 0},
                           Edit{"dq_unscaled", "dQ is divided by the scale", -1, 1, 0},
                           Edit{"dk_unscaled", "dK is divided by the scale", 1, -1, 0},
                           Edit{"dv_scaled", "dV is scaled, as only dQ and dK are", 1, 1, 1},
                           Edit{"scale_in_dv_not_dq", "dV has the scale that dQ lacks", 0, 1, 1},
                           Edit{"scale_in_dv_not_dk", "dV has the scale that dK lacks", 1, 0, 1}}) {
    all.push_back(in_sums({std::string("backward.") + edit.id, edit.words}, [=](GradientModel& m) {
      const double scale = m.forward.trial.problem.scale;
      m.scale_of_dq = std::pow(scale, edit.dq);
      m.scale_of_dk = std::pow(scale, edit.dk);
      m.scale_of_dv = std::pow(scale, edit.dv);
    }));
  }
}

/// D of other products than dO . O.
void add_deltas(std::vector<GradientHypothesis>& all) {
  using OfChannel = double (*)(double dout, double out);
  const auto add = [&](const char* id, const char* words, OfChannel term) {
    all.push_back(before_ds({std::string("backward.delta_of_") + id, words}, [=](GradientModel& m) {
      m.delta = mapped(m.delta, [&](double, auto b, auto h, auto i, auto) {
        double sum = 0;
        for (std::int64_t c = 0; c < m.forward.shape().v_dim; ++c) {
          sum += term(m.dout(b, h, i, c), m.out(b, h, i, c));
        }
        return sum;
      });
    }));
  };
  add("dout", "D is dO . dO, not dO . O", [](double dout, double) { return dout * dout; });
  add("out", "D is O . O, not dO . O", [](double, double out) { return out * out; });
  add("sums_of_dout", "D is the sum of dO, without O", [](double dout, double) { return dout; });
  all.push_back(before_ds({"backward.delta_of_unweighted_dp", "D is the sum of dP, without P"},
                          [](GradientModel& m) {
                            m.delta = mapped(m.delta, [&](double, auto b, auto h, auto i, auto) {
                              double sum = 0;
                              for (std::int64_t j = 0; j < m.forward.shape().kv_tokens; ++j) {
                                if (m.forward.in_sum(b, h, i, j) != 0) sum += m.dp(b, h, i, j);
                              }
                              return sum;
                            });
                          }));
}

/// Parts of rows in dK and dV that are lost or weighed, and what all rows take from elsewhere.
void add_rows_of_sums(std::vector<GradientHypothesis>& all) {
  using OfRow = double (*)(const Trial& trial, std::int64_t h, std::int64_t i);
  const auto add = [&](const char* id, const char* words, OfRow times) {
    all.push_back(in_sums({std::string("backward.") + id, words}, [=](GradientModel& m) {
      for (Tensor<double>* weights : {&m.p_of_dv, &m.ds_of_dk}) {
        *weights = mapped(*weights, [&](double weight, auto, auto h, auto i, auto) {
          return weight * times(m.forward.trial, h, i);
        });
      }
    }));
  };
  add("last_head_of_a_group", "dK and dV have the part of the last query head of a group only",
      [](const Trial& trial, std::int64_t h, std::int64_t) {
        return (h + 1) % trial.group() == 0 ? 1.0 : 0.0;
      });
  add("mean_of_a_group", "dK and dV are the mean over the query heads of a group, not the sum",
      [](const Trial& trial, std::int64_t, std::int64_t) {
        return 1.0 / static_cast<double>(trial.group());
      });
  add("last_query_lost", "dK and dV lack the part of the last query",
      [](const Trial& trial, std::int64_t, std::int64_t i) {
        return i + 1 == trial.shape().q_tokens ? 0.0 : 1.0;
      });
  all.push_back(before_ds({"backward.mask_ignored", "the mask is ignored in the backward pass"},
                          [](GradientModel& m) {
                            see_pairs(m.forward, [](auto, auto) { return true; });
                            weigh_again(m);
                          }));
  all.push_back(before_ds(
      {"backward.delta_of_head_0", "D of head 0 is taken for all heads"}, [](GradientModel& m) {
        const Tensor<double> delta = m.delta;
        m.delta =
            mapped(delta, [&](double, auto b, auto, auto i, auto c) { return delta(b, 0, i, c); });
      }));
}

/// Weights of dV that were not divided by the row sum.
void add_undivided(std::vector<GradientHypothesis>& all) {
  all.push_back(in_sums(
      {"backward.dv_not_divided", "dV is summed with weights that are not divided by the row sum"},
      [](GradientModel& m) {
        for_each_index(m.lse.extents(), [&](auto b, auto h, auto i, auto) {
          const double top = largest_score(m.forward, b, h, i);
          for (std::int64_t j = 0; j < m.forward.shape().kv_tokens; ++j) {
            m.p_of_dv(b, h, i, j) *= top == kNoScore ? 1 : std::exp(m.lse(b, h, i, 0) - top);
          }
        });
      }));
}

/// dP as the product of other rows than those of dO and V.
void add_dps(std::vector<GradientHypothesis>& all) {
  const auto add = [&](const char* id, const char* words, RowsOf left, RowsOf right) {
    all.push_back(before_ds({std::string("backward.dp_of_") + id, words}, [=](GradientModel& m) {
      m.dp = mapped(m.dp, [&](double, auto b, auto h, auto i, auto j) {
        double sum = 0;
        for (std::int64_t c = 0; c < m.forward.shape().v_dim; ++c) {
          sum += element_at(m, left, b, h, i, j, c) * element_at(m, right, b, h, i, j, c);
        }
        return sum;
      });
    }));
  };
  add("out_and_v", "dP is O . V, not dO . V", RowsOf::out, RowsOf::v);
  add("dout_and_k", "dP is dO . K, not dO . V", RowsOf::dout, RowsOf::k);
  add("q_and_v", "dP is Q . V, not dO . V", RowsOf::q, RowsOf::v);
  add("dout_and_out", "dP is dO . O, not dO . V", RowsOf::dout, RowsOf::out);
}

/// P computed again from other numbers than the score minus lse.
void add_weights(std::vector<GradientHypothesis>& all) {
  using Exponent = double (*)(double score, double lse, double scale);
  const auto add = [&](const char* id, const char* words, Exponent exponent) {
    all.push_back(before_ds({std::string("backward.") + id, words}, [=](GradientModel& m) {
      m.p = mapped(m.p, [&](double, auto b, auto h, auto i, auto j) {
        if (m.forward.in_sum(b, h, i, j) == 0) return 0.0;
        return std::exp(exponent(m.forward.score(b, h, i, j), m.lse(b, h, i, 0),
                                 m.forward.trial.problem.scale));
      });
    }));
  };
  add("lse_forgotten", "P is computed again without subtracting lse",
      [](double score, double, double) { return score; });
  add("lse_added", "lse is added to the scores, not subtracted",
      [](double score, double lse, double) { return score + lse; });
  add("scores_not_scaled", "P is computed again from scores without their scale",
      [](double score, double lse, double scale) { return score / scale - lse; });
  add("scores_scaled_twice", "P is computed again from scores that are scaled twice",
      [](double score, double lse, double scale) { return score * scale - lse; });
}

}  // namespace

std::vector<GradientHypothesis> gradient_formula_edits() {
  std::vector<GradientHypothesis> all;
  add_ds(all);
  add_weights_of_sums(all);
  add_rows(all);
  add_scales(all);
  add_deltas(all);
  add_rows_of_sums(all);
  add_undivided(all);
  add_dps(all);
  add_weights(all);
  return all;
}

}  // namespace ringlab::verify
