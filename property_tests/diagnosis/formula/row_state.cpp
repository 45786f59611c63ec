#include "property_tests/diagnosis/formula/row_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringlab::verify {
namespace {

RowState state_of(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i,
                  const std::vector<std::int64_t>& keys) {
  RowState state;
  for (const std::int64_t j : keys) {
    if (model.in_sum(b, h, i, j) != 0) state.max = std::max(state.max, model.score(b, h, i, j));
  }
  for (const std::int64_t j : keys) {
    const double in_sum = model.in_sum(b, h, i, j);
    if (in_sum == 0) continue;
    const double above = model.score(b, h, i, j) - state.max;
    state.terms.push_back(
        {j, above + std::log(model.in_acc(b, h, i, j)), above + std::log(in_sum)});
  }
  return state;
}

void merge(RowState& mine, const RowState& theirs, const MergeRule& rule) {
  if (mine.max == kNoScore && theirs.max == kNoScore) {
    mine.terms.clear();
    return;
  }
  const Maxima maxima{mine.max, theirs.max, std::max(mine.max, theirs.max)};
  const double keep_acc = rule.keep_acc(maxima), keep_sum = rule.keep_sum(maxima);
  const auto rescale = [&](bool acc, bool sum) {
    for (RowState::Term& term : mine.terms) {
      if (acc) term.log_acc += keep_acc;
      if (sum) term.log_sum += keep_sum;
    }
  };
  rescale(true, true);
  const double weigh_acc = rule.weigh_acc(maxima), weigh_sum = rule.weigh_sum(maxima);
  for (RowState::Term term : theirs.terms) {
    rescale(rule.keeps_acc_by_key, rule.keeps_sum_by_key);
    term.log_acc = rule.scores_in_acc ? 0 : term.log_acc + weigh_acc;
    term.log_sum = rule.scores_in_sum ? 0 : term.log_sum + weigh_sum;
    if (rule.scores_in_acc) term.times_acc = theirs.max;
    if (rule.scores_in_sum) term.times_sum = theirs.max;
    mine.terms.push_back(term);
  }
  mine.max = rule.kept_max(maxima);
  if (!rule.divides_each_step) return;
  const double divisor = mine.log_row_sum();
  for (RowState::Term& term : mine.terms) term.log_acc -= divisor;
}

RowState merged(std::vector<RowState> states, const Walk& walk, const MergeRule& rule) {
  if (states.empty()) return {};
  if (!walk.in_a_tree) {
    RowState all;
    if (walk.from_the_first) all = states.front();
    for (std::size_t n = walk.from_the_first ? 1 : 0; n < states.size(); ++n) {
      merge(all, states[n], rule);
    }
    return all;
  }
  merge_in_a_tree(states,
                  [&](RowState& mine, const RowState& theirs, bool) { merge(mine, theirs, rule); });
  return std::move(states.front());
}

}  // namespace

double keep_factor(const Maxima& m) { return m.mine - m.top; }
double weigh_factor(const Maxima& m) { return m.theirs - m.top; }
double top_of(const Maxima& m) { return m.top; }

double RowState::log_row_sum() const {
  double top = kNoScore, sum = 0;
  for (const Term& term : terms) top = std::max(top, term.log_sum);
  if (top == kNoScore) return kNoScore;
  for (const Term& term : terms) sum += term.times_sum * std::exp(term.log_sum - top);
  return top + std::log(sum);
}

const std::vector<Walk>& walks() {
  static const std::vector<Walk> all = [] {
    std::vector<Walk> walks;
    for (const KeyOrder order : {KeyOrder::by_owner, KeyOrder::by_hop}) {
      for (const Piece piece : {Piece::key, Piece::tile, Piece::chunk}) {
        for (const bool skips : {true, false}) walks.push_back({order, piece, false, skips});
      }
    }
    for (const bool skips : {true, false}) {
      walks.push_back({KeyOrder::by_owner, Piece::chunk, true, skips});
    }
    for (const std::int64_t tile : kKernelTiles)
      walks.push_back({.piece = Piece::tile, .tile = tile});
    return walks;
  }();
  return all;
}

Tensor<double> merge_by(Model& model, const Walk& walk, const MergeRule& rule) {
  Tensor<double> added(model.shape().lse());
  if (walk.tile > 0 && model.shape().kv_tokens <= walk.tile)
    return added;  // as right as one tile is
  if (walk.tile > 0) model.trial.options.tile_keys = walk.tile;
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    std::vector<RowState> states;
    double top = kNoScore;
    for (const auto& keys : key_pieces(model, i, walk.order, walk.piece)) {
      RowState state = state_of(model, b, h, i, keys);
      top = std::max(top, state.max);
      if (!walk.skips_unseen || state.max != kNoScore) states.push_back(std::move(state));
    }
    if (top == kNoScore) return;
    const RowState state = merged(std::move(states), walk, rule);
    const double division =
        rule.divisions_at_end == 1 ? 0 : (1 - rule.divisions_at_end) * state.log_row_sum();
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      model.in_acc(b, h, i, j) = model.in_sum(b, h, i, j) = 0;
    }
    if (state.max == kNoScore && rule.asks_the_maximum)
      return;                                         // taken for a row that sees nothing
    for (const RowState::Term& term : state.terms) {  // relative to the largest score
      const double above = model.score(b, h, i, term.key) - top;
      model.in_acc(b, h, i, term.key) = term.times_acc * std::exp(term.log_acc + division - above);
      model.in_sum(b, h, i, term.key) = term.times_sum * std::exp(term.log_sum - above);
    }
    added(b, h, i, 0) = state.max - top;
  });
  return added;
}

}  // namespace ringlab::verify
