// The backward pass of one query row as a subject computes it: what each visible pair may be off by.
#pragma once

#include <vector>

#include "reference/attention/row_gradients.h"

namespace ringlab {

/// Bounds of one visible pair as the subject sees it. dS_ij is the gradient of the scaled score:
/// behind soft-capping.
struct PairErrors {
  double kept = 0;             ///< upper bound of f_ij P_ij
  double kept_error = 0;       ///< of f_ij P_ij after the cast that P·dO uses
  double score = 0;            ///< upper bound of |dS_ij|
  double score_error = 0;      ///< of dS_ij, δD_i included
  double own_score_error = 0;  ///< of dS_ij, δD_i left out
  double row_weight = 0;       ///< P_ij times the steepness: what of dS_ij multiplies D_i
  double row_share = 0;        ///< what of its error multiplies δD_i
};

/// The slope of soft-capping for one pair, within `own`, and what a subject may be off by.
struct Steepness {
  double value = 1;
  double own = 0;
  double error = 0;
  double largest() const { return value + own + error; }
};

/// The results of the forward pass that the backward pass starts from, and what they may be off by.
struct AllowedForward {
  const ExactForward& exact;
  const ForwardTolerance& tolerance;
};

/// Takes rows one after the other, in storage that it keeps. What it was made of outlives it.
class RowErrors {
 public:
  RowErrors(const AttentionInput& input, const NumericsProfile& profile,
            const AllowedForward& forward)
      : input_(input), profile_(profile), forward_(forward) {}

  /// A row that was read at `at`, its exact gradients, and its row of dO. All of them outlive the
  /// questions about it.
  void take(const RowAddress& at, const QueryRow& row, const RowGradients& gradients,
            const double* upstream);

  /// δD_i, for D_i = Σ_c dO_ic O_ic from the output the subject stored, or Σ_j P_ij dP_ij.
  double mean() const { return mean_; }
  /// The bounds of visible pair number n.
  PairErrors pair(std::size_t n) const;

 private:
  void find_value_errors(const RowAddress& at, const double* upstream);
  void find_probability_errors(const RowAddress& at);
  Steepness steepness_of(const ScoreTerms& terms, std::size_t n) const;
  double pair_product_error(std::size_t n) const;
  double product_error(double products) const;
  double mean_error(const RowAddress& at, const double* upstream) const;
  void add_kept(std::size_t n, PairErrors& pair) const;
  void flatten(const Steepness& slope, PairErrors& pair) const;

  const AttentionInput& input_;
  const NumericsProfile& profile_;
  const AllowedForward& forward_;
  const QueryRow* row_ = nullptr;
  const RowGradients* gradients_ = nullptr;
  double mean_ = 0;
  // Per visible key of the row.
  std::vector<double> relative_;       // errors of probabilities
  std::vector<double> factor_errors_;  // of dP_ij, by the wire and by rounded factors
  std::vector<Steepness> steepness_;
  std::vector<double> v_buffer_;
};

}  // namespace ringlab
