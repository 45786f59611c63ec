// The backward pass of one query row: probabilities, dP, D and dS, each with its error.
#pragma once

#include <vector>

#include "reference/attention/query_row.h"

namespace ringlab {

/// Numbers per visible key, in the order of QueryRow::key.
struct RowGradients {
  std::vector<double> probability, probability_error;  ///< P_ij
  std::vector<double> kept, kept_error;                ///< f_ij P_ij
  std::vector<double> products;                        ///< f_ij Σ_c |dO_ic v_jc|
  std::vector<double> difference, difference_error;    ///< dP_ij - D_i
  /// Gradient of the scaled score: dS_ij = P_ij (dP_ij - D_i) times the steepness of soft-capping.
  std::vector<double> score, score_error;
  double mean = 0, mean_error = 0;  ///< D_i
};

/// dP_ij = f_ij Σ_c dO_ic v_jc and D_i = Σ_j P_ij dP_ij, all sums compensated. `row` must have been
/// read at `address`.
RowGradients row_gradients(const AttentionInput& input, const TensorView<const double>& dout,
                           const RowAddress& address, const QueryRow& row);

/// Input error when dout is not (batch, q_heads, q_tokens, v_dim).
void check_dout(const AttentionInput& input, const TensorView<const double>& dout);

}  // namespace ringlab
