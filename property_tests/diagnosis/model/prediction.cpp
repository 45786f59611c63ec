// The sums of a model, and how far from them a subject may be.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

#include "property_tests/diagnosis/model/model.h"

namespace ringlab::verify {
namespace {

constexpr double kAnything = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
/// The tolerance of a row that sees keys, none of which counts: 0 and -inf, or NaN after 0/0.
constexpr double kOrNotANumber = std::numeric_limits<double>::quiet_NaN();
/// A count that no order of rescaling keeps in range: nothing is said of such rows.
constexpr double kWildCount = 1e25;

/// A row with the terms that score_error() needs, and the weights that follow. Σ in_acc w v / Σ
/// in_sum w generalises the softmax: counts of 1 are the truth, 0 is a lost key, 2 a doubled one.
class PredictedRow {
 public:
  PredictedRow(const Model& model, std::int64_t b, std::int64_t h, std::int64_t i)
      : model_(model), b_(b), h_(h), i_(i), g_(h / model.trial.group()) {
    const auto keys = static_cast<std::size_t>(model.shape().kv_tokens);
    terms_.reserve(keys);
    value_row_.reserve(keys);
    for (auto* const numbers : {&score_, &in_acc_, &in_sum_, &weight_, &error_, &change_}) {
      numbers->reserve(keys);
    }
    for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) add_key(j);
    if (model.sink_counts(b, h, i, 0) != 0) {
      sink_ = model.trial.problem.modifiers.sinks[static_cast<std::size_t>(h)];
      top_ = std::max(top_, sink_);
      common_.largest_score = std::max(common_.largest_score, std::abs(sink_));
    }
    for (std::size_t n = 0; n < terms_.size(); ++n) weigh(n);
    weigh_sink();
  }

  std::int64_t terms() const { return std::ssize(terms_) + (has_sink() ? 1 : 0); }
  bool wild() const { return wild_; }
  bool no_key() const { return terms_.empty(); }
  bool has_nan_score() const {
    return std::ranges::any_of(score_, [](double score) { return std::isnan(score); });
  }

  double lse() const { return top_ + std::log(static_cast<double>(sum_)); }
  double lse_allowed() const {
    return lse_bound(model_.profile, {.keys = terms(),
                                      .weighted_rho = rho_,
                                      .row_max = top_,
                                      .row_sum = static_cast<double>(sum_),
                                      .lse = lse(),
                                      .max_error = max_error_,
                                      .merge_error = merges()}) *
               (1 + 0x1p-30) +
           0x1p-49 * (1 + std::abs(top_));
  }

  /// o of a channel, how far from it a subject may be, and whether a NaN meets a weight that may be 0
  /// in a coarser type: some skip it, some add NaN.
  struct Channel {
    double out = 0, allowed = 0;
    bool may_skip_nan = false;
  };
  std::vector<Channel> channels() const {
    std::vector<Channel> all = outputs();
    const std::vector<OutputTerms> terms = output_terms(all);
    for (std::size_t c = 0; c < all.size(); ++c) {
      all[c].allowed = output_bound(model_.profile, terms[c]) * (1 + 0x1p-30) +
                       0x1p-49 * (terms[c].weighted_magnitude + std::abs(all[c].out));
    }
    return all;
  }

 private:
  bool has_sink() const { return model_.sink_counts(b_, h_, i_, 0) != 0; }
  double merges() const {
    return merge_error(model_.profile, common_.largest_score, std::max<std::int64_t>(terms(), 1));
  }

  void add_key(std::int64_t j) {
    const double acc = model_.in_acc(b_, h_, i_, j), sum = model_.in_sum(b_, h_, i_, j);
    wild_ |= !(std::abs(acc) < kWildCount && std::abs(sum) < kWildCount);
    if (acc == 0 && sum == 0) return;
    ScoreTerms terms{.head_dim = model_.shape().head_dim,
                     .scale = std::abs(model_.trial.problem.scale)};
    const std::int64_t query = model_.query_read[model_.pair(i_, j)];
    const std::int64_t row = model_.key_read[model_.pair(i_, j)];
    for (std::int64_t c = 0; c < terms.head_dim; ++c) {
      const double q = std::abs(model_.trial.data.q(b_, h_, query, c));
      const double k = std::abs(model_.trial.data.k(b_, g_, row, c));
      terms.absolute_products += terms.scale * q * k;
      terms.query_magnitude += q;
      terms.key_magnitude += k;
      terms.key_largest = std::max(terms.key_largest, k);
    }
    const Modifiers& modifiers = model_.trial.problem.modifiers;
    terms.modified = modifiers.any();
    terms.softcap = modifiers.softcap;
    terms.scaled_score = std::abs(scaled_product(model_, b_, h_, i_, j));
    terms.bias = std::abs(alibi_bias(model_, h_, i_, j));
    const double score = model_.score(b_, h_, i_, j);
    top_ = std::max(top_, score);
    common_.largest_score = std::max(common_.largest_score, std::abs(score));
    common_.largest_products = std::max(common_.largest_products, terms.absolute_products);
    common_.any_key_largest = std::max(common_.any_key_largest, terms.key_largest);
    common_.largest_scaled = std::max(common_.largest_scaled, terms.scaled_score);
    common_.largest_bias = std::max(common_.largest_bias, terms.bias);
    terms_.push_back(terms);
    score_.push_back(score);
    in_acc_.push_back(acc);
    in_sum_.push_back(sum);
    value_row_.push_back(model_.value_read[model_.pair(i_, j)]);
  }

  void weigh(std::size_t n) {
    weight_.push_back(std::exp(score_[n] - top_));
    sum_ += static_cast<long double>(weight_[n]) * in_sum_[n];
    ScoreTerms terms = terms_[n];
    terms.distance_from_max = top_ - score_[n];
    terms.largest_score = common_.largest_score;
    terms.largest_products = common_.largest_products;
    terms.any_key_largest = common_.any_key_largest;
    terms.largest_scaled = common_.largest_scaled;
    terms.largest_bias = common_.largest_bias;
    error_.push_back(score_error(model_.profile, terms));
    max_error_ = std::max(max_error_, error_[n] - terms.distance_from_max);
  }

  /// Completes the row sum, and with it the change that every weight may suffer.
  void weigh_sink() {
    if (has_sink()) {
      sum_ += static_cast<long double>(std::exp(sink_ - top_)) * model_.sink_counts(b_, h_, i_, 0);
    }
    const auto sum = static_cast<double>(sum_);
    for (std::size_t n = 0; n < terms_.size(); ++n) {
      const double distance = top_ - score_[n];
      change_.push_back((error_[n] <= 1 ? weight_[n] * std::expm1(error_[n])
                                        : weight_error(-distance, 2 * error_[n])) /
                        sum);
      rho_ += change_[n] * std::abs(in_sum_[n]);
    }
    if (!has_sink()) return;
    ScoreTerms terms = common_;
    terms.distance_from_max = top_ - sink_;
    terms.bias = std::abs(sink_);
    terms.modified = true;
    sink_change_ = weight_error(-terms.distance_from_max, score_error(model_.profile, terms)) / sum;
    rho_ += sink_change_;
  }

  std::vector<Channel> outputs() const {
    constexpr double kNextToNothing = 1e-30;
    std::vector<Channel> all(static_cast<std::size_t>(model_.shape().v_dim));
    std::vector<long double> acc(all.size());
    for (std::size_t n = 0; n < terms_.size(); ++n) {
      const std::span<const double> v = values(n);
      const long double counted = static_cast<long double>(weight_[n]) * in_acc_[n];
      for (std::size_t c = 0; c < acc.size(); ++c) acc[c] += counted * v[c];
      if (weight_[n] >= kNextToNothing) continue;
      for (std::size_t c = 0; c < all.size(); ++c) all[c].may_skip_nan |= std::isnan(v[c]);
    }
    for (std::size_t c = 0; c < all.size(); ++c) all[c].out = static_cast<double>(acc[c] / sum_);
    return all;
  }

  std::vector<OutputTerms> output_terms(const std::vector<Channel>& channels) const {
    const auto sum = static_cast<double>(sum_);
    std::vector<OutputTerms> of(channels.size(), {.keys = terms(),
                                                  .weighted_rho = rho_,
                                                  .row_sum = std::min(sum, 1.0),
                                                  .max_error = max_error_,
                                                  .merge_error = merges()});
    for (std::size_t c = 0; c < of.size(); ++c) {
      of[c].out = std::abs(channels[c].out);
      if (has_sink()) of[c].weighted_spread += sink_change_ * of[c].out;
      if (model_.trial.problem.modifiers.dropout != 0) of[c].factor_roundings = kDropoutRoundings;
    }
    const bool is_exact = travels_exactly(model_.profile);
    for (std::size_t n = 0; n < terms_.size(); ++n) {
      const std::span<const double> v = values(n);
      const double w = weight_[n] / sum;
      for (std::size_t c = 0; c < of.size(); ++c) {
        const double counted = in_acc_[n] * v[c];
        of[c].weighted_spread += change_[n] * std::abs(counted - in_sum_[n] * channels[c].out);
        of[c].weighted_magnitude += w * std::abs(counted);
        of[c].magnitude_sum += std::abs(counted);
      }
      if (is_exact) continue;
      double largest = 0;
      for (const double x : v) largest = std::max(largest, std::abs(x));
      for (std::size_t c = 0; c < of.size(); ++c) {
        const double wire =
            std::abs(in_acc_[n]) * wire_error(model_.profile, std::abs(v[c]), largest);
        of[c].weighted_wire += (w + change_[n]) * wire;
        of[c].wire_sum += wire;
      }
    }
    return of;
  }

  /// The row of v that term n reads.
  std::span<const double> values(std::size_t n) const {
    const auto width = static_cast<std::size_t>(model_.shape().v_dim);
    return width == 0 ? std::span<const double>()
                      : std::span(&model_.trial.data.v(b_, g_, value_row_[n], 0), width);
  }

  const Model& model_;
  std::int64_t b_, h_, i_, g_;
  bool wild_ = false;
  double top_ = -std::numeric_limits<double>::infinity();
  double sink_ = 0, sink_change_ = 0, rho_ = 0, max_error_ = 0;
  long double sum_ = 0;
  ScoreTerms common_;
  std::vector<ScoreTerms> terms_;
  std::vector<double> score_, in_acc_, in_sum_, weight_, error_, change_;
  std::vector<std::int64_t> value_row_;
};

/// Rows without a visible key are 0 and -inf, or NaN where the model divides 0 by 0.
class Finisher {
 public:
  explicit Finisher(const Model& model) : model_(model) {
    const Shape& shape = model.shape();
    made_ = {{Tensor<double>(shape.out()), Tensor<double>(shape.lse())},
             {Tensor<double>(shape.out()), Tensor<double>(shape.lse())}};
  }

  Prediction all_rows() && {
    for_each_index(model_.shape().lse(),
                   [&](auto b, auto h, auto i, auto) { finish_row(b, h, i); });
    return std::move(made_);
  }

  /// Later rows come first: they see more keys.
  bool agree_with(const AttentionOutput& got, LseCompared lse) && {
    const Shape& shape = model_.shape();
    for (std::int64_t i = shape.q_tokens - 1; i >= 0; --i) {
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        for (std::int64_t h = 0; h < shape.q_heads; ++h) {
          finish_row(b, h, i);
          if (!row_agrees(b, h, i, got, lse)) return false;
        }
      }
    }
    return true;
  }

 private:
  bool row_agrees(std::int64_t b, std::int64_t h, std::int64_t i, const AttentionOutput& got,
                  LseCompared lse) const {
    const auto [made, allowed] = std::tie(made_.output, made_.allowed);
    for (std::int64_t c = 0; c < model_.shape().v_dim; ++c) {
      if (!within(got.out(b, h, i, c), made.out(b, h, i, c), allowed.out(b, h, i, c))) return false;
    }
    return lse == LseCompared::no ||
           within(got.lse(b, h, i, 0), made.lse(b, h, i, 0), allowed.lse(b, h, i, 0));
  }

  void set(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c, double o,
           double allowed) {
    const bool overflows = std::abs(o) > model_.profile.max_finite / 4;
    made_.output.out(b, h, i, c) = o;
    made_.allowed.out(b, h, i, c) = overflows ? kAnything : allowed;
  }
  void set_lse(std::int64_t b, std::int64_t h, std::int64_t i, double lse, double allowed) {
    const bool adds = !model_.added_to_lse.values().empty() && std::isfinite(lse);
    made_.output.lse(b, h, i, 0) = adds ? lse + model_.added_to_lse(b, h, i, 0) : lse;
    made_.allowed.lse(b, h, i, 0) = allowed;
  }

  bool sees_keys(std::int64_t i) const {
    for (std::int64_t j = 0; j < model_.shape().kv_tokens; ++j) {
      if (model_.trial.problem.mask.allows(i, j)) return true;
    }
    return false;
  }

  void finish_row(std::int64_t b, std::int64_t h, std::int64_t i) {
    const PredictedRow row(model_, b, h, i);
    const std::int64_t channels = model_.shape().v_dim;
    if (row.terms() == 0) {
      const bool is_emptied = sees_keys(i);
      const double allowed = is_emptied ? kOrNotANumber : 0;
      set_lse(b, h, i, -kAnything, model_.divides_empty_rows ? kAnything : allowed);
      const double o = model_.divides_empty_rows ? kNotANumber : 0;
      for (std::int64_t c = 0; c < channels; ++c) set(b, h, i, c, o, allowed);
      return;
    }
    const double lse = row.lse();
    if (row.has_nan_score() && !row.wild()) {
      set_lse(b, h, i, kNotANumber, 0);
      for (std::int64_t c = 0; c < channels; ++c) set(b, h, i, c, kNotANumber, 0);
      return;
    }
    const bool wild = row.wild() || !std::isfinite(lse);
    set_lse(b, h, i, lse, wild ? kAnything : row.lse_allowed());
    const std::vector<PredictedRow::Channel> all = row.channels();
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto& [o, allowed, may_skip_nan] = all[static_cast<std::size_t>(c)];
      const bool unknown = wild || may_skip_nan;
      set(b, h, i, c, row.no_key() ? 0 : o, unknown ? kAnything : row.no_key() ? 0 : allowed);
    }
  }

  const Model& model_;
  Prediction made_;
};

}  // namespace

Prediction finish(const Model& model) { return Finisher(model).all_rows(); }

bool agrees(const Model& model, const AttentionOutput& got, LseCompared lse) {
  return Finisher(model).agree_with(got, lse);
}

}  // namespace ringlab::verify
