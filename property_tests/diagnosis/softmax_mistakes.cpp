// Mistakes of the online softmax: of rescaling, of maxima, of the base of powers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// The factor of the running sums when the maximum rises by `rise` >= 0, relative to the right one
/// (e^-rise): 1 is right.
using Excess = double (*)(double rise);
double not_rescaled(double rise) { return std::exp(rise); }
double inverted(double rise) { return std::exp(2 * rise); }
double rescaled_in_base_two(double rise) { return std::exp(rise * (1 - std::numbers::ln2)); }
double rescaled_in_base_e(double rise) { return std::exp(rise * (1 - std::numbers::log2e)); }
double rescaled_twice(double rise) { return std::exp(-rise); }

struct RescaledSums {
  bool acc = false, row_sum = false;
};

/// Counts keys that came before a new maximum `excess` times. Pieces are walked backwards, since a
/// key suffers from every rise that comes after it.
void rescale_wrongly(Model& model, KeyOrder order, Piece piece, RescaledSums sums, Excess excess) {
  const Model right = model;
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const auto pieces = key_pieces(right, i, order, piece);
    const std::vector<double> maxima = running_maxima(right, b, h, i, pieces);
    double factor = 1;
    for (std::size_t at = pieces.size(); at-- > 0;) {
      if (maxima[at] == kNoScore) continue;  // nothing was summed up yet
      for (const std::int64_t j : pieces[at]) {
        if (sums.acc) model.in_acc(b, h, i, j) *= factor;
        if (sums.row_sum) model.in_sum(b, h, i, j) *= factor;
      }
      if (at > 0 && maxima[at - 1] != kNoScore) factor *= excess(maxima[at] - maxima[at - 1]);
    }
  });
}

void add_rescaling(std::vector<Hypothesis>& all, const Suspect& suspect, RescaledSums sums,
                   Excess excess) {
  for (const KeyOrder order : {KeyOrder::by_owner, KeyOrder::by_hop}) {
    for (const Piece piece : {Piece::key, Piece::tile, Piece::chunk}) {
      all.push_back(by_model(
          suspect, [=](Model& model) { rescale_wrongly(model, order, piece, sums, excess); }));
    }
  }
}

/// Merges partial answers of the chunks pairwise in a tree, and forgets to rescale the left one's
/// sums.
void merge_without_rescaling(Model& model, RescaledSums sums) {
  const Model right = model;
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const auto parts = key_pieces(right, i, KeyOrder::by_owner, Piece::chunk);
    std::vector<double> top, factor(parts.size(), 1.0);
    for (const auto& part : parts) top.push_back(running_maxima(right, b, h, i, {part}).front());
    for (std::size_t step = 1; step < parts.size(); step *= 2) {
      for (std::size_t left = 0; left + step < parts.size(); left += 2 * step) {
        const double both = std::max(top[left], top[left + step]);
        const double rise = top[left] == kNoScore ? 0 : both - top[left];
        for (std::size_t part = left; part < std::min(left + step, parts.size()); ++part) {
          factor[part] *= std::exp(rise);
        }
        top[left] = both;
      }
    }
    for (std::size_t part = 0; part < parts.size(); ++part) {
      for (const std::int64_t j : parts[part]) {
        if (sums.acc) model.in_acc(b, h, i, j) *= factor[part];
        if (sums.row_sum) model.in_sum(b, h, i, j) *= factor[part];
      }
    }
  });
}

/// Takes weights as b^(s - m) for another base, and rescales, too.
void use_base(Model& model, double log_of_base) {
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    double top = kNoScore;
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      if (model.in_sum(b, h, i, j) != 0) top = std::max(top, model.score(b, h, i, j));
    }
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
    double top = kNoScore;
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
      if (model.in_sum(b, h, i, j) != 0) top = std::max(top, model.score(b, h, i, j));
    }
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

/// Takes exp(s - m) for the score m of the first key that a row meets: later ones overflow.
void with_first_maximum(Prediction& prediction, const Model& model) {
  const double largest = model.trial.problem.dtype == DType::f64 ? 709 : 88;
  constexpr double kAny = std::numeric_limits<double>::infinity();
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const auto maxima =
        running_maxima(model, b, h, i, key_pieces(model, i, KeyOrder::by_hop, Piece::key));
    const auto first = std::ranges::find_if(maxima, [](double top) { return top != kNoScore; });
    if (first == maxima.end()) return;
    const double rise = maxima.back() - *first;
    if (rise < largest - 8) return;
    const bool gone = rise > largest + 2;  // inf / inf, log inf
    for (std::int64_t c = 0; c < model.shape().v_dim; ++c) {
      prediction.output.out(b, h, i, c) = std::numeric_limits<double>::quiet_NaN();
      prediction.allowed.out(b, h, i, c) = gone ? 0 : kAny;
    }
    prediction.output.lse(b, h, i, 0) = kAny;
    prediction.allowed.lse(b, h, i, 0) = gone ? 0 : kAny;
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
  add_rescaling(
      all,
      {"softmax.acc_not_rescaled", "the accumulator is not rescaled when the row maximum rises"},
      {.acc = true}, not_rescaled);
  add_rescaling(
      all, {"softmax.sum_not_rescaled", "the row sum is not rescaled when the row maximum rises"},
      {.row_sum = true}, not_rescaled);
  add_rescaling(all,
                {"softmax.nothing_rescaled",
                 "neither accumulator nor row sum is rescaled when the row maximum rises"},
                {true, true}, not_rescaled);
  add_rescaling(all, {"softmax.rescale_inverted", "old sums are multiplied by e^(m_new - m_old)"},
                {true, true}, inverted);
  add_rescaling(all, {"softmax.rescaled_twice", "old sums are rescaled twice"}, {true, true},
                rescaled_twice);
  const Suspect other_base{"softmax.rescale_in_another_base",
                           "old sums are rescaled in another base than weights are taken in"};
  add_rescaling(all, other_base, {true, true}, rescaled_in_base_two);
  add_rescaling(all, other_base, {true, true}, rescaled_in_base_e);
  all.push_back(by_model(
      {"softmax.sum_not_rescaled", "the row sum is not rescaled when the row maximum rises"},
      [](Model& m) { merge_without_rescaling(m, {.row_sum = true}); }));
  all.push_back(by_model(
      {"softmax.acc_not_rescaled", "the accumulator is not rescaled when the row maximum rises"},
      [](Model& m) { merge_without_rescaling(m, {.acc = true}); }));
  all.push_back(by_result(
      {"softmax.maximum_not_subtracted", "e^s is taken without subtracting the row maximum"},
      [](Prediction& p, const Model& m) { without_maximum(p, m, Base::zero); }));
  all.push_back(by_result({"softmax.maximum_of_the_first_key",
                           "the first key that a row meets sets its maximum for good"},
                          with_first_maximum));
  for (const ZeroSum zero_sum : {ZeroSum::divided, ZeroSum::taken_for_empty}) {
    all.push_back(by_result(
        {"softmax.maximum_starts_at_zero", "the running maximum starts at 0, not at -inf"},
        [zero_sum](Prediction& p, const Model& m) {
          without_maximum(p, m, Base::zero_or_more, zero_sum);
        }));
  }
  add_constants(all);
  add_empty_rows(all);
  return all;
}

}  // namespace ringlab::verify
