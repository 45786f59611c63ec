// The backward pass written out, as model.h does it for the forward pass.
#pragma once

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/laws/gradients/gradients.h"

namespace ringlab::verify {

/// The tensor whose rows a sum goes over: row i of q, out and dout, row j of k and v.
enum class RowsOf { q, k, v, out, dout };

/// Arrays over pairs are (batch, q_heads, query, key); hidden pairs have p = 0.
struct GradientModel {
  Model forward;
  Tensor<double> dout;
  Tensor<double> out;        ///< the exact output
  Tensor<double> lse;        ///< the lse that P is recomputed with
  Tensor<double> p;          ///< e^(score - lse), without dropout
  Tensor<double> factor;     ///< the factor of dropout
  Tensor<double> dp;         ///< dO · v
  Tensor<double> delta;      ///< (b, h, i, 1): dO · o
  Tensor<double> steepness;  ///< derivative of soft-capping
  // Factors of the sums for dV, dQ and dK, after differentiate().
  Tensor<double> p_of_dv, ds_of_dq, ds_of_dk;
  RowsOf rows_of_dv = RowsOf::dout, rows_of_dq = RowsOf::k, rows_of_dk = RowsOf::q;
  double scale_of_dq = 1, scale_of_dk = 1, scale_of_dv = 1;
  /// [key · ranks + rank]: the token to which that rank's part of dK and dV of the key is added; -1:
  /// nobody knows. Empty: its own.
  std::vector<std::int64_t> added_to = {};
};

/// The model with everything before dS right. Later `forward` may become a model of other tensors:
/// `lse` and `delta` stay the right ones of `scene`.
GradientModel make_gradient_model(const Scene& scene, const Tensor<double>& dout);
/// Computes p, dp and steepness again, after edits of the forward model or of lse.
void weigh_again(GradientModel& model);
/// Element c of a row of `rows` at a pair; NaN past its channels.
double element_at(const GradientModel& model, RowsOf rows, std::int64_t b, std::int64_t h,
                  std::int64_t i, std::int64_t j, std::int64_t c);
/// Computes the factors of the sums: f P, and dS = P (f dP - delta) steepness; f is the factor of
/// dropout (FlashAttention-2, Dao 2023, section 3.1, with dropout).
void differentiate(GradientModel& model);

struct GradientPrediction {
  AttentionGradients gradients;
  BackwardTolerance allowed;
};
/// Sums up dQ = scale dS K, dK = scale dS^T Q, dV = P^T dO. Tolerances are generous where numbers
/// of this model are large, +inf where nothing can be said: past the channels of other tensors, too.
GradientPrediction sum_up(const GradientModel& model);

}  // namespace ringlab::verify
