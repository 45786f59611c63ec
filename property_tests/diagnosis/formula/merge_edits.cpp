// Single edits of the rule by which two states of an online softmax become one, and of the division
// at the end.
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "property_tests/diagnosis/formula/row_state.h"
#include "property_tests/diagnosis/formula/sums.h"
#include "property_tests/diagnosis/hypotheses.h"

namespace ringlab::verify {
namespace {

void add_rule(std::vector<Hypothesis>& all, const Suspect& suspect, const MergeRule& rule,
              const std::vector<Walk>& in = walks()) {
  for (const Walk& walk : in) {
    all.push_back(by_model(suspect, [=](Model& m) { m.added_to_lse = merge_by(m, walk, rule); }));
  }
}

double one(const Maxima&) { return 0; }
double inverted(const Maxima& m) { return m.top - m.mine; }
double squared(const Maxima& m) { return 2 * (m.mine - m.top); }
double in_base_two(const Maxima& m) { return (m.mine - m.top) * std::numbers::ln2; }
double in_base_e_of_two(const Maxima& m) { return (m.mine - m.top) * std::numbers::log2e; }
double kept_too(const Maxima& m) { return (m.theirs - m.top) + (m.mine - m.top); }
double relative_to_old(const Maxima& m) {
  return m.mine == kNoScore ? m.theirs - m.top : m.theirs - m.mine;
}

MergeRule with_keep(const Sums& sums, OfMaxima factor) {
  MergeRule rule;
  if (sums.acc) rule.keep_acc = factor;
  if (sums.sum) rule.keep_sum = factor;
  return rule;
}

MergeRule with_weigh(MergeRule rule, const Sums& sums, OfMaxima factor) {
  if (sums.acc) rule.weigh_acc = factor;
  if (sums.sum) rule.weigh_sum = factor;
  return rule;
}

/// Rows that see a key are NaN: at the first one e^(m_new - m_old) is e^inf, and 0 · inf is NaN.
void add_nan(std::vector<Hypothesis>& all, const Suspect& suspect, const Sums& sums) {
  all.push_back(by_result(suspect, [=](Prediction& prediction, const Model& model) {
    for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
      if (prediction.output.lse(b, h, i, 0) == kNoScore) return;
      for (std::int64_t c = 0; c < model.shape().v_dim; ++c) {
        prediction.output.out(b, h, i, c) = std::nan("");
      }
      if (sums.sum) prediction.output.lse(b, h, i, 0) = std::nan("");
    });
  }));
}

void add_old_factors(std::vector<Hypothesis>& all) {
  add_rule(
      all,
      {"softmax.acc_not_rescaled", "the accumulator is not rescaled when the row maximum rises"},
      with_keep(kAcc, one));
  add_rule(all,
           {"softmax.sum_not_rescaled", "the row sum is not rescaled when the row maximum rises"},
           with_keep(kSum, one));
  add_rule(all,
           {"softmax.nothing_rescaled",
            "neither accumulator nor row sum is rescaled when the row maximum rises"},
           with_keep(kBoth, one));
  for (const Sums& sums : {kBoth, kAcc, kSum}) {
    const std::string of = sums.acc && sums.sum ? "" : std::string("_of_") + sums.id;
    const std::string old = sums.acc && sums.sum ? "old sums are" : std::string(sums.words) + " is";
    add_rule(all, {"softmax.rescale_inverted" + of, old + " multiplied by e^(m_new - m_old)"},
             with_keep(sums, inverted));
    if (sums.acc) {
      add_nan(all, {"softmax.rescale_inverted" + of, old + " multiplied by e^(m_new - m_old)"},
              sums);
    }
    add_rule(all, {"softmax.rescaled_twice" + of, old + " rescaled twice"},
             with_keep(sums, squared));
    const Suspect other_base{"softmax.rescale_in_another_base" + of,
                             old + " rescaled in another base than weights are taken in"};
    add_rule(all, other_base, with_keep(sums, in_base_two));
    add_rule(all, other_base, with_keep(sums, in_base_e_of_two));
  }
}

void add_new_factors(std::vector<Hypothesis>& all) {
  for (const Sums& sums : {kAcc, kSum, kBoth}) {
    const std::string id = sums.id, words = sums.words;
    add_rule(all,
             {"merge.new_part_not_rescaled_in_" + id,
              "what is added to " + words + " lacks the factor e^(m_added - m_new)"},
             with_weigh({}, sums, one));
    add_rule(all,
             {sums.acc && sums.sum ? "merge.parts_not_rescaled" : "merge.parts_added_in_" + id,
              words + ": two parts are added without factors, each relative to its own maximum"},
             with_weigh(with_keep(sums, one), sums, one));
    add_rule(all,
             {"merge.factors_exchanged_in_" + id,
              words + ": the old part gets the new part's factor, and the new one that of the old"},
             with_weigh(with_keep(sums, weigh_factor), sums, keep_factor));
    add_rule(all,
             {"softmax.rescaled_after_adding_in_" + id,
              words + ": what is added is multiplied by e^(m_old - m_new), too"},
             with_weigh({}, sums, kept_too));
    add_rule(all,
             {"softmax.factor_on_the_new_part_in_" + id,
              words + ": what is added is multiplied by e^(m_old - m_new), and not what was there"},
             with_weigh(with_keep(sums, one), sums, kept_too));
    MergeRule by_key;
    by_key.keeps_acc_by_key = sums.acc;
    by_key.keeps_sum_by_key = sums.sum;
    add_rule(all,
             {"softmax.rescaled_at_each_key_in_" + id,
              words + ": all that was added is multiplied by e^(m_old - m_new) again at each key"},
             by_key);
    add_rule(all,
             {"softmax.weights_of_the_old_maximum_in_" + id,
              "what is added to " + words + " is relative to the maximum before it"},
             with_weigh({}, sums, relative_to_old));
  }
}

/// Scores where their weights belong, where each key is added by itself.
void add_scores(std::vector<Hypothesis>& all) {
  for (const Sums& sums : {kAcc, kSum, kBoth}) {
    MergeRule rule;
    rule.scores_in_acc = sums.acc;
    rule.scores_in_sum = sums.sum;
    add_rule(all,
             {std::string("softmax.scores_for_weights_in_") + sums.id,
              std::string("scores are added to ") + sums.words + ", not their weights"},
             rule,
             {{.order = KeyOrder::by_owner, .piece = Piece::key, .skips_unseen = true},
              {.order = KeyOrder::by_hop, .piece = Piece::key, .skips_unseen = true}});
  }
}

/// The walks in which the first piece is no update of an empty state.
std::vector<Walk> walks_from_the_first() {
  std::vector<Walk> from_the_first = walks();
  for (Walk& walk : from_the_first) walk.from_the_first = true;
  return from_the_first;
}

void add_maxima(std::vector<Hypothesis>& all) {
  MergeRule rule;
  rule.kept_max = [](const Maxima& m) { return m.mine; };
  for (const auto& in : {walks(), walks_from_the_first()}) {
    for (const bool asks : {true, false}) {
      rule.asks_the_maximum = asks;
      add_rule(all, {"softmax.maximum_not_kept", "the new row maximum is used, but never stored"},
               rule, in);
    }
  }
  rule.asks_the_maximum = true;
  rule.kept_max = [](const Maxima& m) { return m.theirs; };
  add_rule(all,
           {"softmax.maximum_of_the_last_part",
            "the maximum that is stored is that of the last part, which may be lower"},
           rule);
}

void add_divisions(std::vector<Hypothesis>& all) {
  MergeRule rule;
  const std::vector<Walk> any = {Walk{}};  // the sums are right, whatever their order
  rule.divisions_at_end = 0;
  add_rule(all, {"out.not_divided", "O is not divided by the row sum"}, rule, any);
  rule.divisions_at_end = 2;
  add_rule(all, {"out.divided_twice", "O is divided by the row sum twice"}, rule, any);
  rule.divides_each_step = true;
  for (const int at_end : {0, 1}) {
    rule.divisions_at_end = at_end;
    add_rule(all,
             {"softmax.divided_each_step",
              "the accumulator is divided by the row sum at every step, not once at the end"},
             rule);
  }
}

}  // namespace

std::vector<Hypothesis> merge_edits() {
  std::vector<Hypothesis> all;
  add_old_factors(all);
  add_new_factors(all);
  add_scores(all);
  add_maxima(all);
  add_divisions(all);
  return all;
}

}  // namespace ringlab::verify
