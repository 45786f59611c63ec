// Attention of one query row in any number type that keeps track of its own error: the formulas of
// core/modifiers.h, once, for double-double balls and for intervals.
//
// A Number has exact construction from double, + - * /, product(double, double), add_product,
// high(), and exp, log, tanh, sech_squared. Every result contains the true value, whatever the
// shift is that keeps exponentials in range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "reference/precise/seen.h"

namespace ringlab::precise {

template <class Number>
Number dot(const std::vector<double>& a, const std::vector<double>& b) {
  Number sum(0.0);
  for (std::size_t c = 0; c < a.size(); ++c) sum = sum + Number::product(a[c], b[c]);
  return sum;
}

template <class Number>
struct SoftRow {
  RowPlace place;
  std::vector<std::int64_t> keys;
  std::vector<Number> weights;    ///< e^{s_j - shift}
  std::vector<Number> steepness;  ///< d s_j / d (scale q·k_j); empty: all 1
  std::vector<char> kept;         ///< empty: all
  std::optional<Number> sink_weight;
  Number sum{0.0};  ///< of all weights
  double shift = 0;

  bool is_kept(std::size_t n) const { return kept.empty() || kept[n] != 0; }
  bool sees_nothing() const { return keys.empty(); }
};

/// The factor of pairs that dropout keeps, divided by: 1 - dropout.
template <class Number>
Number kept_share(const Problem& problem) {
  return Number(1.0) - Number(problem.modifiers.dropout);
}

/// Score of one key from q·k, and its steepness.
template <class Number>
Number modified_score(const Problem& problem, const RowPlace& at, std::int64_t key, Number scaled,
                      std::vector<Number>& steepness) {
  const Modifiers& modifiers = problem.modifiers;
  if (modifiers.softcap != 0) {
    const Number ratio = scaled / Number(modifiers.softcap);
    steepness.push_back(sech_squared(ratio));
    scaled = tanh(ratio) * Number(modifiers.softcap);
  }
  if (!modifiers.alibi_slopes.empty()) {
    const auto distance = static_cast<double>(distance_of(problem.shape, at.query, key));
    const double slope = modifiers.alibi_slopes[static_cast<std::size_t>(at.q_head)];
    scaled = scaled - Number::product(slope, distance);
  }
  return scaled;
}

template <class Number>
void weigh(const Problem& problem, SoftRow<Number>& row) {
  const std::vector<double>& sinks = problem.modifiers.sinks;
  std::optional<double> sink;
  if (!sinks.empty()) sink = sinks[static_cast<std::size_t>(row.place.q_head)];
  row.shift = sink.value_or(-std::numeric_limits<double>::infinity());
  for (const Number& score : row.weights) row.shift = std::max(row.shift, score.high());
  for (Number& weight : row.weights) {  // still a score
    weight = exp(weight - Number(row.shift));
    row.sum = row.sum + weight;
  }
  if (!sink) return;
  row.sink_weight = exp(Number(*sink) - Number(row.shift));
  row.sum = row.sum + *row.sink_weight;
}

/// The scores and weights of one row. What the mask hides is not read.
template <class Number>
SoftRow<Number> soft_row(const AttentionInput& input, const RowPlace& place) {
  const Problem& problem = input.problem;
  SoftRow<Number> row;
  row.place = place;
  row.keys = seen_keys(problem, place.query);
  std::vector<double> q, k;
  if (!row.keys.empty()) {
    read_channels(input.q, {place.batch, place.q_head, place.query}, "q", q);
  }
  for (const std::int64_t key : row.keys) {
    read_channels(input.k, {place.batch, place.kv_head, key}, "k", k);
    const Number scaled = dot<Number>(q, k) * Number(problem.scale);
    row.weights.push_back(modified_score(problem, place, key, scaled, row.steepness));
    if (problem.modifiers.dropout != 0) {
      row.kept.push_back(precise::is_kept(problem, place, key) ? 1 : 0);
    }
  }
  weigh(problem, row);
  return row;
}

/// log Σ_j e^{s_j}; the row must see a key.
template <class Number>
Number lse_of(const SoftRow<Number>& row) {
  return Number(row.shift) + log(row.sum);
}

/// Σ_j f_j e^{s_j - lse} v_jc for every channel.
template <class Number>
std::vector<Number> output_of(const AttentionInput& input, const SoftRow<Number>& row) {
  std::vector<Number> sums(static_cast<std::size_t>(input.problem.shape.v_dim), Number(0.0));
  std::vector<double> v;
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    read_channels(input.v, {row.place.batch, row.place.kv_head, row.keys[n]}, "v", v);
    if (!row.is_kept(n)) continue;
    for (std::size_t c = 0; c < v.size(); ++c) sums[c].add_product(row.weights[n], v[c]);
  }
  Number divisor = row.sum;
  if (input.problem.modifiers.dropout != 0) divisor = divisor * kept_share<Number>(input.problem);
  for (Number& sum : sums) sum = sum / divisor;
  return sums;
}

/// Gradients of one row: dS_j (of scale · q·k_j) and f_j P_j, one per key seen.
template <class Number>
struct RowSlopes {
  std::vector<Number> score;
  std::vector<Number> kept_probability;
};

/// dS_j = P_j (f_j dP_j - D), D = Σ_l P_l f_l dP_l. With g_j = f_j dP_j and any g:
/// g_j - D = (g_j - g) - Σ_l P_l (g_l - g) + P_sink g, which is exactly zero where all g_l agree.
template <class Number>
RowSlopes<Number> slopes_of(const AttentionInput& input, const SoftRow<Number>& row,
                            const std::vector<double>& dout) {
  const Number share = kept_share<Number>(input.problem);
  RowSlopes<Number> slopes;
  std::vector<Number> gain;  // g_j · share
  std::vector<double> v;
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    read_channels(input.v, {row.place.batch, row.place.kv_head, row.keys[n]}, "v", v);
    gain.push_back(row.is_kept(n) ? dot<Number>(dout, v) : Number(0.0));
  }
  if (gain.empty()) return slopes;
  const Number first = gain.front();
  Number mean(0.0);
  for (std::size_t n = 0; n < gain.size(); ++n) {
    gain[n] = n == 0 ? Number(0.0) : gain[n] - first;
    mean = mean + row.weights[n] * gain[n];
  }
  if (row.sink_weight) mean = mean - *row.sink_weight * first;
  mean = mean / row.sum;
  for (std::size_t n = 0; n < gain.size(); ++n) {
    const Number probability = row.weights[n] / row.sum;
    Number slope = probability * (gain[n] - mean) / share;
    if (!row.steepness.empty()) slope = slope * row.steepness[n];
    slopes.score.push_back(slope);
    slopes.kept_probability.push_back(row.is_kept(n) ? probability / share : Number(0.0));
  }
  return slopes;
}

}  // namespace ringlab::precise
