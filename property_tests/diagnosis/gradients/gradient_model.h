// The backward pass written out, as model.h does it for the forward pass.
#pragma once

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/laws/gradients/gradients.h"

namespace ringlab::verify {

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
  double scale_of_dq = 1, scale_of_dk = 1;
};

/// The model with everything before dS right. Later `forward` may become a model of other tensors:
/// `lse` and `delta` stay the right ones of `scene`.
GradientModel make_gradient_model(const Scene& scene, const Tensor<double>& dout);
/// Computes p, dp and steepness again, after edits of the forward model or of lse.
void weigh_again(GradientModel& model);
/// Computes the factors of the sums: f P, and dS = P (f dP - delta) steepness; f is the factor of
/// dropout (FlashAttention-2, Dao 2023, section 3.1, with dropout).
void differentiate(GradientModel& model);

struct GradientPrediction {
  AttentionGradients gradients;
  BackwardTolerance allowed;
};
/// Sums up dQ = scale dS K, dK = scale dS^T Q, dV = P^T dO. Tolerances are generous where numbers
/// of this model are large, +inf where nothing can be said.
GradientPrediction sum_up(const GradientModel& model);

}  // namespace ringlab::verify
