// Mistakes of the softmax: of maxima, of the base of powers, of rows that see nothing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// Takes weights as b^(s - m) for another base, and rescales, too.
void use_base(Model& model, double log_of_base) {
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const double top = largest_score(model, b, h, i);
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      double& score = model.score(b, h, i, j);
      if (top != kNoScore) score = top + (score - top) * log_of_base;
    }
  });
}

/// Takes exp(s - m) for an m that is not the row's maximum: right until e^x leaves its range.
enum class Base { zero, zero_or_more };
/// Answers for a row whose sum is 0: 0/0, or the answer of a row that sees nothing.
enum class ZeroSum { divided, taken_for_empty };
void without_maximum(Prediction& prediction, const Model& model, Base base,
                     ZeroSum zero_sum = ZeroSum::divided) {
  const double largest = model.trial.problem.dtype == DType::f64 ? 709 : 88;
  const double least = model.trial.problem.dtype == DType::f64 ? -746 : -104;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const double out_of_zero_sum = zero_sum == ZeroSum::divided ? kNan : 0;
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const double top = largest_score(model, b, h, i);
    if (top == kNoScore && base == Base::zero) return;
    const bool over = base == Base::zero && top > largest - 8;
    const bool under = top < least + 30;  // precision goes before the number does
    if (!over && !under) return;
    const bool gone = top < least - 1;  // sums are 0: 0/0, log 0
    for (std::int64_t c = 0; c < model.shape().v_dim; ++c) {
      prediction.output.out(b, h, i, c) = out_of_zero_sum;
      prediction.allowed.out(b, h, i, c) = gone ? 0 : kAny;
    }
    prediction.output.lse(b, h, i, 0) = kNoScore;
    prediction.allowed.lse(b, h, i, 0) = gone ? 0 : kAny;
  });
}

/// Takes exp(s - m) for an m that is not the largest score so far: larger scores overflow.
enum class StaleMaximum {
  of_first,  ///< the first key that a row meets sets it for good
  of_each    ///< each key sets it, whether its score is larger or not
};
void with_stale_maximum(Prediction& prediction, const Model& model, StaleMaximum stale) {
  const double largest = model.trial.problem.dtype == DType::f64 ? 709 : 88;
  constexpr double kAny = std::numeric_limits<double>::infinity();
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    double top = kNoScore, set = kNoScore, rise = 0;
    for (const auto& piece : key_pieces(model, i, KeyOrder::by_hop, Piece::key)) {
      const std::int64_t j = piece.front();
      if (model.in_sum(b, h, i, j) == 0) continue;
      const double score = model.score(b, h, i, j);
      if (set == kNoScore || stale == StaleMaximum::of_each) set = score;
      top = std::max(top, score);
      rise = std::max(rise, top - set);
    }
    if (rise < largest - 8) return;
    const bool gone = rise > largest + 2;  // inf / inf, log inf
    for (std::int64_t c = 0; c < model.shape().v_dim; ++c) {
      prediction.output.out(b, h, i, c) = std::numeric_limits<double>::quiet_NaN();
      prediction.allowed.out(b, h, i, c) = gone ? 0 : kAny;
    }
    const bool is_infinite = gone && stale == StaleMaximum::of_first;
    prediction.output.lse(b, h, i, 0) = kAny;
    prediction.allowed.lse(b, h, i, 0) = is_infinite ? 0 : kAny;
  });
}

/// Gives hidden pairs this score, where a kernel looks at them, in place of -inf.
void hide_with(Model& model, double score, Reach reach) {
  const Mask mask = model.trial.problem.mask;
  const std::vector<std::uint8_t> reached = pairs_in_reach(model, reach);
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    if (mask.allows(i, j) || !reached[model.pair(i, j)]) return;
    model.in_acc(b, h, i, j) = model.in_sum(b, h, i, j) = 1;
    model.score(b, h, i, j) = score;
  });
}

/// Hides with a finite score below a maximum that does not know of hidden keys: NaN until a visible
/// one has come.
void hide_below_maximum(Prediction& prediction, const Model& model, Reach reach) {
  const std::vector<std::uint8_t> reached = pairs_in_reach(model, reach);
  const KeyOrder order = reach == Reach::tiles_by_hop ? KeyOrder::by_hop : KeyOrder::by_owner;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    bool seen = false, looked = false, spoiled = false;
    for (const auto& tile : key_pieces(model, i, order, Piece::tile)) {
      for (const std::int64_t j : tile) {
        seen |= model.in_sum(b, h, i, j) != 0;
        looked |= reached[model.pair(i, j)] != 0;
      }
      spoiled |= looked && !seen;
    }
    if (!spoiled) return;
    for (std::int64_t c = 0; c < model.shape().v_dim; ++c) {
      prediction.output.out(b, h, i, c) = kNan;
      prediction.allowed.out(b, h, i, c) = 0;
    }
    prediction.output.lse(b, h, i, 0) = kNan;
    prediction.allowed.lse(b, h, i, 0) = seen ? 0 : std::numeric_limits<double>::infinity();
  });
}

/// Lets hidden scores raise the maximum of a row before they are hidden: weights underflow.
void hide_after_maximum(Prediction& prediction, const Model& model, Reach reach) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const std::vector<std::uint8_t> reached = pairs_in_reach(model, reach);
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    double hidden = kNoScore, visible = kNoScore;
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      const bool seen = model.in_sum(b, h, i, j) != 0;
      double& top = seen ? visible : hidden;
      if (seen || reached[model.pair(i, j)]) top = std::max(top, model.score(b, h, i, j));
    }
    if (hidden == kNoScore || hidden - visible < 50) return;
    const bool gone = visible == kNoScore;  // a row sum of 0: 0/0, log 0
    for (std::int64_t c = 0; c < model.shape().v_dim; ++c) {
      prediction.output.out(b, h, i, c) = std::numeric_limits<double>::quiet_NaN();
      prediction.allowed.out(b, h, i, c) = gone ? 0 : kAny;
    }
    prediction.output.lse(b, h, i, 0) = kNoScore;
    prediction.allowed.lse(b, h, i, 0) = gone ? 0 : kAny;
  });
}

/// Sums up scores in place of weights: hidden ones, which are -inf, too.
void sum_scores(Prediction& prediction, const Model& model) {
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const auto keys = model.shape().kv_tokens;
    const double top = largest_score(model, b, h, i);
    double sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      sum += model.in_sum(b, h, i, j) != 0 ? model.score(b, h, i, j) : kNoScore;
    }
    const double right = std::exp(prediction.output.lse(b, h, i, 0) - top), times = right / sum;
    if (keys == 0) return;
    for (std::int64_t c = 0; c < model.shape().v_dim && top != kNoScore; ++c) {
      prediction.output.out(b, h, i, c) *= sum == 0 ? 0 : times;
      prediction.allowed.out(b, h, i, c) *= 1 + 2 * std::abs(times);
    }
    prediction.output.lse(b, h, i, 0) = top + std::log(sum);
    prediction.allowed.lse(b, h, i, 0) *= 1 + 2 * std::abs(times);
  });
}

/// Takes the softmax over the queries that see a key, not over the keys that a query sees.
void normalise_keys(Model& model) {
  const Model right = model;
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    double over_queries = 0, over_keys = 0;
    const double own = right.score(b, h, i, j);
    for (std::int64_t n = 0; n < model.shape().q_tokens; ++n) {
      over_queries += right.in_sum(b, h, n, j) * std::exp(right.score(b, h, n, j) - own);
    }
    for (std::int64_t n = 0; n < model.shape().kv_tokens; ++n) {
      over_keys += right.in_sum(b, h, i, n) * std::exp(right.score(b, h, i, n) - own);
    }
    if (right.in_acc(b, h, i, j) != 0) model.in_acc(b, h, i, j) *= over_keys / over_queries;
  });
}

/// Adds 1 to each row sum: a weight relative to the maximum.
void add_one_to_sums(Prediction& prediction, const Model& model) {
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    double& lse = prediction.output.lse(b, h, i, 0);
    const double top = largest_score(model, b, h, i);
    if (top == kNoScore) return;
    const double sum = std::exp(lse - top);
    for (std::int64_t c = 0; c < model.shape().v_dim; ++c) {
      prediction.output.out(b, h, i, c) *= sum / (sum + 1);
    }
    lse = top + std::log(sum + 1);
  });
}

void add_constants(std::vector<Hypothesis>& all) {
  for (const double log2e : {1.4427, 1.44270, 1.4426, 1.443, 1.44, 1.4}) {
    all.push_back(by_model({"softmax.log2e_too_short", "log2(e) has too few digits"},
                           [=](Model& m) { use_base(m, log2e / std::numbers::log2e); }));
  }
  all.push_back(by_model({"softmax.weights_in_base_two",
                          "weights are 2^(s - m), without log2(e); lse has the natural maximum"},
                         [](Model& m) { use_base(m, std::numbers::ln2); }));
  all.push_back(by_reading(
      {"softmax.log2e_forgotten", "scores go into powers of 2 without log2(e): a softer softmax"},
      [](Trial& trial) { trial.problem.scale *= std::numbers::ln2; }));
  all.push_back(by_reading({"softmax.log2e_twice", "scores are multiplied by log2(e) twice"},
                           [](Trial& trial) { trial.problem.scale *= std::numbers::log2e; }));
}

void add_empty_rows(std::vector<Hypothesis>& all) {
  all.push_back(by_model({"softmax.empty_row_divided", "a query that sees no key divides 0 by 0"},
                         [](Model& m) { m.divides_empty_rows = true; }));
  for (const double score : {-1e4, -1e5, -1e9}) {
    const Suspect suspect{"mask.hidden_score_finite",
                          "hidden scores are a large negative number in place of -inf"};
    for (const Reach reach : {Reach::everything, Reach::tiles_by_owner, Reach::tiles_by_hop}) {
      all.push_back(by_model(suspect, [=](Model& m) { hide_with(m, score, reach); }));
    }
  }
  for (const Reach reach : {Reach::everything, Reach::tiles_by_owner, Reach::tiles_by_hop}) {
    all.push_back(by_model({"mask.hidden_score_zero", "hidden scores are 0 in place of -inf"},
                           [=](Model& m) { hide_with(m, 0, reach); }));
    all.push_back(by_result(
        {"mask.hidden_score_finite", "hidden scores are a large negative number in place of -inf"},
        [=](Prediction& p, const Model& m) { hide_below_maximum(p, m, reach); }));
    all.push_back(by_result(
        {"mask.after_the_maximum", "hidden scores raise the row maximum before they are hidden"},
        [=](Prediction& p, const Model& m) { hide_after_maximum(p, m, reach); }));
  }
}

}  // namespace

std::vector<Hypothesis> softmax_mistakes() {
  std::vector<Hypothesis> all;
  all.push_back(by_result(
      {"softmax.maximum_not_subtracted", "e^s is taken without subtracting the row maximum"},
      [](Prediction& p, const Model& m) { without_maximum(p, m, Base::zero); }));
  all.push_back(by_result(
      {"softmax.maximum_of_the_first_key",
       "the first key that a row meets sets its maximum for good"},
      [](Prediction& p, const Model& m) { with_stale_maximum(p, m, StaleMaximum::of_first); }));
  all.push_back(by_result(
      {"softmax.maximum_of_each_key", "each key sets the maximum, also where its score is lower"},
      [](Prediction& p, const Model& m) { with_stale_maximum(p, m, StaleMaximum::of_each); }));
  for (const ZeroSum zero_sum : {ZeroSum::divided, ZeroSum::taken_for_empty}) {
    all.push_back(by_result(
        {"softmax.maximum_starts_at_zero", "the running maximum starts at 0, not at -inf"},
        [zero_sum](Prediction& p, const Model& m) {
          without_maximum(p, m, Base::zero_or_more, zero_sum);
        }));
  }
  all.push_back(by_model({"softmax.over_queries", "the softmax goes over queries, not over keys"},
                         normalise_keys));
  all.push_back(by_result({"softmax.one_more_weight", "the row sum has one weight of 1 too many"},
                          add_one_to_sums));
  all.push_back(by_result(
      {"softmax.scores_summed", "the row sum is that of scores, before they are made into weights"},
      sum_scores));
  add_constants(all);
  add_empty_rows(all);
  return all;
}

}  // namespace ringlab::verify
