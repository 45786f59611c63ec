#include "reference/attention/query_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

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

const AttentionInput* checked(const AttentionInput& input) {
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
  const bool ascending =
      std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
  if (!ascending || rows.front() < 0 || rows.back() >= tokens) {
    throw_usage_error({.where = "sampled rows",
                       .expected = "ascending query rows below " + std::to_string(tokens),
                       .actual = std::to_string(rows.front()) + " … " + std::to_string(rows.back()),
                       .hint = ""});
  }
  return rows;
}

/// weight · (e^error - 1), without transcendental functions where the error is small.
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

double QueryRow::probability_error(std::size_t n) const {
  const double p = probability(n);
  return (weight_error[n] + p * row_sum_error) / (row_sum - row_sum_error) * (1 + 0x1p-40) +
         2 * kUnitRoundoff * p + kUnderflow;
}

ScoreRange::ScoreRange(const QueryRow& row, const AttentionInput& input, const RowAddress& at) {
  const std::int64_t channels = input.problem.shape.head_dim;
  std::vector<double> buffer;
  const Magnitudes query =
      magnitudes(channels_of(input.q, at.batch, at.q_head, at.query, buffer), channels);
  common_.head_dim = channels;
  common_.scale = std::abs(input.problem.scale);
  common_.query_magnitude = query.sum;
  for (std::size_t n = 0; n < row.key.size(); ++n) {
    const Magnitudes key =
        magnitudes(channels_of(input.k, at.batch, at.kv_head, row.key[n], buffer), channels);
    key_magnitude_.push_back(key.sum);
    key_largest_.push_back(key.largest);
    common_.any_key_largest = std::max(common_.any_key_largest, key.largest);
    common_.largest_score = std::max(common_.largest_score, std::abs(row.score[n]));
    common_.largest_products = std::max(common_.largest_products, row.products[n]);
  }
}

ScoreTerms ScoreRange::terms(const QueryRow& row, std::size_t n) const {
  ScoreTerms terms = common_;
  terms.absolute_products = row.products[n];
  terms.distance_from_max = row.row_max - row.score[n];
  terms.key_magnitude = key_magnitude_[n];
  terms.key_largest = key_largest_[n];
  return terms;
}

double ScoreRange::largest_score(const NumericsProfile& profile) const {
  return common_.largest_score + largest_wire_score_error(profile, common_);
}

RowReader::RowReader(const AttentionInput& input, const ExactOptions& options)
    : input_(checked(input)),
      visible_(input.problem.mask, input.problem.shape.q_tokens, input.problem.shape.kv_tokens),
      rows_(chosen_rows(options.rows, input.problem.shape.q_tokens)),
      exact_products_(fits_float(input.q) && fits_float(input.k)) {}

std::int64_t RowReader::rows() const {
  const Shape& shape = input_->problem.shape;
  return shape.batch * shape.q_heads * rows_per_head();
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
  row.key.clear();
  row.score.clear();
  row.products.clear();
  row.weight_error.clear();
  for (std::int64_t j = 0; j < shape.kv_tokens; ++j) {
    if (!visible_(at.query, j)) continue;
    const double* k = channels_of(input_->k, at.batch, at.kv_head, j, k_buffer);
    const Dot product = dot(q, k, shape.head_dim, exact_products_);
    const double score = scale * product.value;
    check_finite(score, "score");
    check_finite(product.magnitude, "score");
    row.key.push_back(j);
    row.score.push_back(score);
    row.products.push_back(std::abs(scale) * product.magnitude);
    // For now the error of the score; weigh() turns it into that of the weight.
    row.weight_error.push_back(std::abs(scale) * product.error(shape.head_dim) +
                               kUnitRoundoff * std::abs(score) + kUnderflow);
  }
}

void RowReader::weigh(QueryRow& row) const {
  row.weight.clear();
  row.row_max = row.empty() ? -std::numeric_limits<double>::infinity()
                            : *std::max_element(row.score.begin(), row.score.end());
  DoubleSum sum;
  double error = 0;
  for (std::size_t n = 0; n < row.score.size(); ++n) {
    const double exponent = row.score[n] - row.row_max;
    const double weight = std::exp(exponent);
    const double exponent_error =
        row.weight_error[n] + kUnitRoundoff * std::abs(exponent) + kExpError * (1 + 0x1p-40);
    row.weight.push_back(weight);
    row.weight_error[n] = error_of(weight, exponent, exponent_error) + kUnderflow;
    sum.add(weight);
    error += row.weight_error[n];
  }
  const double rounding = kUnitRoundoff + compensated_rounding(row.keys());
  row.row_sum = sum.value();
  row.row_sum_error = (error + rounding * row.row_sum) *
                      (1 + (2 * static_cast<double>(row.keys()) + 16) * kUnitRoundoff);
}

}  // namespace ringlab
