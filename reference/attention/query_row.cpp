#include "reference/attention/query_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "reference/attention/compensated.h"
#include "reference/core/error.h"

namespace ringlab {
namespace {

constexpr double kExpError = 2 * kUnitRoundoff;  // the C library's exp and log: within one ulp

std::string text(const Extents& e) {
  return "(" + std::to_string(e.batch) + ", " + std::to_string(e.heads) + ", " +
         std::to_string(e.tokens) + ", " + std::to_string(e.channels) + ")";
}

void check_view(const char* name, const Extents& found, const Extents& wanted) {
  if (found == wanted) return;
  throw_input_error({.where = name,
                     .expected = "shape " + text(wanted),
                     .actual = text(found),
                     .hint = "The shape of the problem decides"});
}

}  // namespace

// Views are checked against the problem, not against each other.
const AttentionInput* checked_input(const AttentionInput& input) {
  check_problem(input.problem);
  const Shape& shape = input.problem.shape;
  check_view("q", input.q.extents, shape.q());
  check_view("k", input.k.extents, shape.k());
  check_view("v", input.v.extents, shape.v());
  return &input;
}

std::vector<std::int64_t> chosen_rows(const std::vector<std::int64_t>& rows, std::int64_t tokens) {
  if (rows.empty()) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(tokens));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const bool ascending =  // strictly, so that no row is there twice
      std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
  if (!ascending || rows.front() < 0 || rows.back() >= tokens) {
    throw_usage_error(
        {.where = "sampled rows",
         .expected = "ascending query rows below " + std::to_string(tokens),
         .actual = std::to_string(rows.front()) + " … " + std::to_string(rows.back())});
  }
  return rows;
}

namespace {

/// weight · (e^error - 1), without transcendental functions where the error is small.
/// w (e^ε - 1) <= w ε (1 + ε) while ε is below one half.
double error_of(double weight, double exponent, double error) {
  return error < 0.5 ? weight * error * (1 + error) : weight_error(exponent, error);
}

struct Magnitudes {
  double sum = 0;
  double largest = 0;
};

Magnitudes magnitudes(const double* values, std::int64_t channels) {
  Magnitudes result;
  for (std::int64_t c = 0; c < channels; ++c) {
    result.sum += std::abs(values[c]);
    result.largest = std::max(result.largest, std::abs(values[c]));
  }
  return result;
}

}  // namespace

void check_finite(double x, const char* what) {
  if (std::isfinite(x)) return;
  throw_input_error({.where = what,
                     .expected = "a finite number",
                     .actual = std::to_string(x),
                     .hint = "Visible inputs must be finite, and so must what fp64 makes of them"});
}

double QueryRow::quotient_error(double one_weight, double one_error) const {
  // The division of two numbers that are both off, as for outputs. Scores of 1e16 and more may
  // leave a row sum that is smaller than its error: nothing is known of the quotient then.
  const double least_sum = row_sum - row_sum_error;
  if (!(least_sum > 0)) return std::numeric_limits<double>::infinity();
  const double p = one_weight / row_sum;
  return (one_error + p * row_sum_error) / least_sum * (1 + 0x1p-40) + 2 * kUnitRoundoff * p +
         kUnderflow;
}

ScoreRange::ScoreRange(const QueryRow& row, const AttentionInput& input, const RowAddress& at) {
  const std::int64_t channels = input.problem.shape.head_dim;
  std::vector<double> buffer;
  const Magnitudes query =
      magnitudes(channels_of(input.q, at.batch, at.q_head, at.query, buffer), channels);
  common_.head_dim = channels;
  common_.scale = std::abs(input.problem.scale);
  common_.query_magnitude = query.sum;
  common_.modified = input.problem.modifiers.changes_scores() || row.sink.has_value();
  common_.softcap = input.problem.modifiers.softcap;
  if (row.sink) {
    common_.largest_score = common_.largest_bias = std::abs(*row.sink);
    sink_distance_ = row.row_max - *row.sink;
    sink_size_ = std::abs(*row.sink);
  }
  // Once per row: sums and largest magnitudes over the row's keys, for bounds of all of them.
  for (std::size_t n = 0; n < row.key.size(); ++n) {
    const Magnitudes key =
        magnitudes(channels_of(input.k, at.batch, at.kv_head, row.key[n], buffer), channels);
    key_magnitude_.push_back(key.sum);
    key_largest_.push_back(key.largest);
    common_.any_key_largest = std::max(common_.any_key_largest, key.largest);
    common_.largest_score = std::max(common_.largest_score, std::abs(row.score[n]));
    common_.largest_scaled = std::max(common_.largest_scaled, std::abs(row.scaled_score(n)));
    common_.largest_bias = std::max(common_.largest_bias, std::abs(row.bias_of(n)));
    common_.largest_products = std::max(common_.largest_products, row.products[n]);
  }
}

ScoreTerms ScoreRange::terms(const QueryRow& row, std::size_t n) const {
  ScoreTerms terms = common_;
  terms.absolute_products = row.products[n];
  terms.distance_from_max = row.row_max - row.score[n];
  terms.key_magnitude = key_magnitude_[n];
  terms.key_largest = key_largest_[n];
  terms.scaled_score = std::abs(row.scaled_score(n));
  terms.bias = std::abs(row.bias_of(n));
  return terms;
}

ScoreTerms ScoreRange::sink_terms() const {
  ScoreTerms terms = common_;
  terms.softcap = 0;  // a sink is not capped
  terms.distance_from_max = sink_distance_;
  terms.bias = sink_size_;
  return terms;
}

double ScoreRange::largest_score(const NumericsProfile& profile) const {
  return common_.largest_score + largest_wire_score_error(profile, common_);
}

RowReader::RowReader(const AttentionInput& input, const ExactOptions& options)
    : input_(checked_input(input)),
      visible_(input.problem.mask, input.problem.shape.q_tokens, input.problem.shape.kv_tokens),
      modify_(input.problem),
      dropout_(input.problem.modifiers),
      rows_(chosen_rows(options.rows, input.problem.shape.q_tokens)),
      exact_products_(fits_float(input.q) && fits_float(input.k)) {}

std::int64_t RowReader::rows() const {
  const Shape& shape = input_->problem.shape;
  return shape.batch * shape.q_heads * rows_per_head();
}

std::int64_t RowReader::rows_per_kv_head() const {
  const Shape& shape = input_->problem.shape;
  return shape.q_heads / shape.kv_heads * rows_per_head();
}

RowAddress RowReader::address(std::int64_t row) const {
  const Shape& shape = input_->problem.shape;
  const std::int64_t head = row / rows_per_head();
  RowAddress address;
  address.slot = row % rows_per_head();
  address.query = rows_[static_cast<std::size_t>(address.slot)];
  address.q_head = head % shape.q_heads;
  address.batch = head / shape.q_heads;
  // Equal shares: of q_heads query heads, the first q_heads / kv_heads read K/V head 0, and so on.
  address.kv_head = address.q_head * shape.kv_heads / shape.q_heads;
  return address;
}

Extents RowReader::extents(std::int64_t channels) const {
  const Shape& shape = input_->problem.shape;
  return {shape.batch, shape.q_heads, rows_per_head(), channels};
}

void RowReader::read(const RowAddress& address, QueryRow& row) const {
  read_scores(address, row);
  weigh(row);
}

void RowReader::read_scores(const RowAddress& at, QueryRow& row) const {
  const Shape& shape = input_->problem.shape;
  const double scale = input_->problem.scale;
  std::vector<double> q_buffer, k_buffer;
  const double* q = channels_of(input_->q, at.batch, at.q_head, at.query, q_buffer);
  for (std::vector<double>* values :
       {&row.score, &row.products, &row.weight_error, &row.scaled, &row.bias, &row.steepness,
        &row.steepness_error, &row.factor}) {
    values->clear();
  }
  row.key.clear();
  row.sink = modify_.sink(at.q_head);
  // Decides pair by pair, by the oracle's own predicate: no interval, no block.
  for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
    if (!visible_(at.query, j)) continue;
    const double* k = channels_of(input_->k, at.batch, at.kv_head, j, k_buffer);
    const Dot product = dot(q, k, shape.head_dim, exact_products_);
    // Products may overflow where their sum does not: neither is a number to go on with.
    const double score = scale * product.value;
    check_finite(score, "score");
    check_finite(product.magnitude, "score");
    row.key.push_back(j);
    row.products.push_back(std::abs(scale) * product.magnitude);
    // The dot product's error, the rounding of the factor, and what may underflow.
    add_score(at, score,
              std::abs(scale) * product.error(shape.head_dim) + kUnitRoundoff * std::abs(score) +
                  kUnderflow,
              row);
  }
}

void RowReader::add_score(const RowAddress& at, double scaled, double error, QueryRow& row) const {
  const std::int64_t key = row.key.back();
  if (dropout_.active()) {
    row.factor.push_back(dropout_.factor(at.batch, at.q_head, at.query, key));
  }
  // Stores errors of scores in weight_error; weigh() turns them into errors of weights.
  if (!input_->problem.modifiers.changes_scores()) {
    row.score.push_back(scaled);
    row.weight_error.push_back(error);
    return;
  }
  const ModifiedScore score = modify_(at.q_head, at.query, key, scaled, error);
  row.score.push_back(score.value);
  row.weight_error.push_back(score.error);
  row.scaled.push_back(scaled);
  row.bias.push_back(score.bias);
  row.steepness.push_back(score.steepness);
  row.steepness_error.push_back(score.steepness_error);
}

void RowReader::weigh(QueryRow& row) const {
  row.weight.clear();
  // A sink is one more score, and may be the largest.
  row.row_max = row.sink.value_or(-std::numeric_limits<double>::infinity());
  for (const double score : row.score) row.row_max = std::max(row.row_max, score);
  DoubleSum sum;
  double error = 0;
  const auto weigh_one = [&](double score, double score_error) {
    // Exact differences are off by the score's error; exp is off by an ulp on top.
    const double exponent = score - row.row_max;
    const double weight = std::exp(exponent);
    const double exponent_error =
        score_error + kUnitRoundoff * std::abs(exponent) + kExpError * (1 + 0x1p-40);
    const double weight_error = error_of(weight, exponent, exponent_error) + kUnderflow;
    sum.add(weight);
    error += weight_error;
    return std::pair(weight, weight_error);
  };
  for (std::size_t n = 0; n < row.score.size(); ++n) {
    const auto [weight, weight_error] = weigh_one(row.score[n], row.weight_error[n]);
    row.weight.push_back(weight);
    row.weight_error[n] = weight_error;
  }
  // The sink's value is exact: no error of its own.
  if (row.sink) std::tie(row.sink_weight, row.sink_weight_error) = weigh_one(*row.sink, 0);
  const double rounding = kUnitRoundoff + compensated_rounding(row.terms());
  row.row_sum = sum.value();
  // Errors were summed plainly: the last factor covers what that sum itself loses.
  row.row_sum_error = (error + rounding * row.row_sum) *
                      (1 + (2 * static_cast<double>(row.terms()) + 16) * kUnitRoundoff);
}

}  // namespace ringlab
