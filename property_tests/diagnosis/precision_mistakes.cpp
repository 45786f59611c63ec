// Mistakes of precision, emulated: numbers that are kept in too few bits.
//
// Nothing is said of a row where f32 arithmetic could round the other way than the emulation.
#include <cmath>
#include <limits>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

constexpr double kWildWeight = 1e26;
/// The error that f32 may make in a weight before it is rounded to less, for scores of at most
/// `size`.
double doubt(double size) { return 0x1p-22 * (16 + 4 * size); }

using Round = double (*)(double);
double to_bf16(double x) { return round_to(DType::bf16, x); }
double to_f16(double x) { return round_to(DType::f16, x); }
/// Rounds towards zero.
double cut_to(DType dtype, double x) {
  const double rounded = round_to(dtype, x);
  if (std::abs(rounded) <= std::abs(x)) return rounded;
  return rounded - std::copysign(2 * half_ulp(dtype, std::abs(x)), x);
}
double cut_to_bf16(double x) { return cut_to(DType::bf16, x); }
double cut_to_f16(double x) { return cut_to(DType::f16, x); }

/// Rounds x, which is known within `error`; NaN where it may round either way.
double rounded_surely(Round round, double x, double error) {
  const double low = round(x - error), high = round(x + error);
  return low == high ? low : std::numeric_limits<double>::quiet_NaN();
}

/// A row's keys in the order they are summed up, with the running maximum of each.
struct Walk {
  std::vector<std::int64_t> keys;
  std::vector<double> top;  ///< maximum that the key's weight is relative to
  double size = 0;          ///< largest size of the scores
};
Walk walk(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i, KeyOrder order,
          Piece piece) {
  const auto pieces = key_pieces(model, i, order, piece);
  const std::vector<double> maxima = running_maxima(model, b, h, i, pieces);
  Walk way;
  for (std::size_t at = 0; at < pieces.size(); ++at) {
    for (const std::int64_t j : pieces[at]) {
      if (model.in_sum(b, h, i, j) == 0) continue;
      way.keys.push_back(j);
      way.top.push_back(maxima[at]);
      way.size = std::max(way.size, std::abs(model.score(b, h, i, j)));
    }
  }
  return way;
}

enum class Rounded { acc, acc_and_sum };

/// Rounds weights before they meet V. Nothing is said of rows whose rounding could fall either way.
void round_weights(Model& model, KeyOrder order, Piece piece, Round round, Rounded what) {
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const Walk way = walk(model, b, h, i, order, piece);
    for (std::size_t at = 0; at < way.keys.size(); ++at) {
      const std::int64_t j = way.keys[at];
      const double weight = std::exp(model.score(b, h, i, j) - way.top[at]);
      if (weight == 0) continue;
      const double factor = rounded_surely(round, weight, weight * doubt(way.size)) / weight;
      model.in_acc(b, h, i, j) *= std::isnan(factor) ? kWildWeight : factor;
      if (what == Rounded::acc_and_sum)
        model.in_sum(b, h, i, j) *= std::isnan(factor) ? kWildWeight : factor;
    }
  });
}

/// Rounds the row sum after each key: in bf16 it stops growing at 256 times the next weight.
void round_sum(Model& model, KeyOrder order, Piece piece, Round round) {
  const Model right = model;
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    const Walk way = walk(right, b, h, i, order, piece);
    double sum = 0, exact = 0, top = kNoScore;
    for (std::size_t at = 0; at < way.keys.size(); ++at) {
      const double keep = top == kNoScore ? 0 : std::exp(top - way.top[at]);
      const double weight = std::exp(right.score(b, h, i, way.keys[at]) - way.top[at]);
      top = way.top[at];
      const double next = sum * keep + weight;
      sum = rounded_surely(round, next, next * doubt(way.size));
      exact = exact * keep + weight;
    }
    if (way.keys.empty()) return;
    const double factor = std::isnan(sum) ? kWildWeight : sum / exact;
    for (const std::int64_t j : way.keys) model.in_sum(b, h, i, j) *= factor;
  });
}

/// Rounds the accumulator after each key.
void round_acc(Prediction& prediction, const Model& model, KeyOrder order, Piece piece,
               Round round) {
  for_each_index(model.shape().out(), [&](auto b, auto h, auto i, auto c) {
    const Walk way = walk(model, b, h, i, order, piece);
    double acc = 0, sum = 0, top = kNoScore;
    for (std::size_t at = 0; at < way.keys.size(); ++at) {
      const double keep = top == kNoScore ? 0 : std::exp(top - way.top[at]);
      const double weight = std::exp(model.score(b, h, i, way.keys[at]) - way.top[at]);
      top = way.top[at];
      const double v = model.trial.data.v(b, h / model.trial.group(), way.keys[at], c);
      const double size = std::abs(acc * keep) + std::abs(weight * v);
      acc = rounded_surely(round, acc * keep + weight * v, size * doubt(way.size));
      sum = sum * keep + weight;
    }
    if (way.keys.empty()) return;
    prediction.output.out(b, h, i, c) = acc / sum;
    if (std::isnan(acc)) {
      prediction.allowed.out(b, h, i, c) = std::numeric_limits<double>::infinity();
    }
  });
}

/// Rounds partial answers of the chunks whenever two of them are merged, in a tree.
void round_partials(Prediction& prediction, const Model& model, Round round) {
  struct PartialAnswer {
    double acc = 0, sum = 0, top = kNoScore;
  };
  for_each_index(model.shape().out(), [&](auto b, auto h, auto i, auto c) {
    std::vector<PartialAnswer> parts;
    for (const auto& chunk : key_pieces(model, i, KeyOrder::by_owner, Piece::chunk)) {
      PartialAnswer& part = parts.emplace_back();
      part.top = running_maxima(model, b, h, i, {chunk}).front();
      for (const std::int64_t j : chunk) {
        if (model.in_sum(b, h, i, j) == 0) continue;
        const double weight = std::exp(model.score(b, h, i, j) - part.top);
        part.sum += weight;
        part.acc += weight * model.trial.data.v(b, h / model.trial.group(), j, c);
      }
    }
    for (std::size_t step = 1; step < parts.size(); step *= 2) {
      for (std::size_t left = 0; left + step < parts.size(); left += 2 * step) {
        PartialAnswer &mine = parts[left], &theirs = parts[left + step];
        const double top = std::max(mine.top, theirs.top);
        if (top == kNoScore) continue;
        const double keep = std::exp(mine.top - top), weight = std::exp(theirs.top - top);
        const double size = std::abs(mine.acc * keep) + std::abs(theirs.acc * weight);
        mine = {rounded_surely(round, mine.acc * keep + theirs.acc * weight,
                               size * doubt(std::abs(top))),
                mine.sum * keep + theirs.sum * weight, top};
      }
    }
    if (parts.front().sum == 0) return;
    prediction.output.out(b, h, i, c) = parts.front().acc / parts.front().sum;
    if (std::isnan(parts.front().acc)) {
      prediction.allowed.out(b, h, i, c) = std::numeric_limits<double>::infinity();
    }
  });
}

/// Stores o in its narrow dtype without rounding. Nothing is said of numbers so near one of that
/// dtype that they could fall to either side of it.
void cut_output(Prediction& prediction, const Model& model) {
  const DType dtype = model.profile.out_dtype;
  if (dtype != DType::f16 && dtype != DType::bf16) return;
  const Round cut = dtype == DType::f16 ? cut_to_f16 : cut_to_bf16;
  for (std::size_t n = 0; n < prediction.output.out.values().size(); ++n) {
    double &x = prediction.output.out.values()[n], &allowed = prediction.allowed.out.values()[n];
    const double stored = rounded_surely(cut, x, allowed - half_ulp(dtype, std::abs(x)));
    if (std::isnan(stored)) {
      allowed = std::numeric_limits<double>::infinity();
    } else {
      x = stored;
      allowed = 0;
    }
  }
}

/// Multiplies scale and q in the narrow type before the dot product.
Hypothesis query_in(Suspect suspect, Round round) {
  return by_reading(std::move(suspect), [round](Trial& trial) {
    const double scale = trial.problem.scale;
    trial.data.q = mapped(trial.data.q, [&](double x, auto...) { return round(scale * x); });
    trial.problem.scale = 1;
  });
}

struct RoundingWay {
  KeyOrder order;
  Piece piece;
};
std::vector<RoundingWay> ways() {
  std::vector<RoundingWay> all;
  for (const KeyOrder order : {KeyOrder::by_owner, KeyOrder::by_hop}) {
    for (const Piece piece : {Piece::key, Piece::tile, Piece::chunk}) all.push_back({order, piece});
  }
  return all;
}

void add_weights(std::vector<Hypothesis>& all, const Suspect& suspect, Round round, Rounded what) {
  for (const RoundingWay way : ways()) {
    all.push_back(by_model(
        suspect, [=](Model& model) { round_weights(model, way.order, way.piece, round, what); }));
  }
}

}  // namespace

std::vector<Hypothesis> precision_mistakes() {
  std::vector<Hypothesis> all;
  add_weights(all,
              {"precision.weights_cut_to_bf16",
               "weights are cut to bf16, towards zero, for P·V but not for the row sum"},
              cut_to_bf16, Rounded::acc);
  add_weights(
      all,
      {"precision.weights_in_bf16", "weights are rounded to bf16 for P·V, which was not declared"},
      to_bf16, Rounded::acc);
  add_weights(
      all,
      {"precision.weights_and_sum_in_bf16", "weights are rounded to bf16, which was not declared"},
      to_bf16, Rounded::acc_and_sum);
  add_weights(
      all,
      {"precision.weights_in_f16", "weights are rounded to f16 for P·V, which was not declared"},
      to_f16, Rounded::acc);
  for (const RoundingWay way : ways()) {
    all.push_back(by_model({"precision.row_sum_in_bf16", "the row sum is kept in bf16"},
                           [=](Model& m) { round_sum(m, way.order, way.piece, to_bf16); }));
    all.push_back(by_result(
        {"precision.acc_in_bf16", "the accumulator is kept in bf16"},
        [=](Prediction& p, const Model& m) { round_acc(p, m, way.order, way.piece, to_bf16); }));
  }
  all.push_back(by_result({"precision.partials_in_bf16", "partial answers are merged in bf16"},
                          [](Prediction& p, const Model& m) { round_partials(p, m, to_bf16); }));
  all.push_back(by_result(
      {"precision.output_cut", "o is cut to its dtype, towards zero, in place of rounded"},
      cut_output));
  all.push_back(query_in({"precision.query_scaled_in_bf16",
                          "q is multiplied by the scale in bf16 before the dot product"},
                         to_bf16));
  all.push_back(query_in({"precision.query_scaled_in_f16",
                          "q is multiplied by the scale in f16 before the dot product"},
                         to_f16));
  return all;
}

}  // namespace ringlab::verify
