// Hypotheses about gradients, for subjects whose forward pass is right.
#pragma once

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/gradients/gradient_model.h"

namespace ringlab::verify {

struct GradientHypothesis {
  Suspect suspect;
  std::function<GradientPrediction(const Scene&, const Tensor<double>& dout)> predict;
};

/// A mistake before dS: in the inputs read, in P, in dP or in delta.
GradientHypothesis before_ds(Suspect suspect, std::function<void(GradientModel&)> edit);
/// A mistake in the factors of the sums: P or dS of one product, or its scale.
GradientHypothesis in_sums(Suspect suspect, std::function<void(GradientModel&)> edit);
/// A mistake at the end: dQ, dK or dV are changed as a whole.
GradientHypothesis in_results(Suspect suspect,
                              std::function<void(GradientPrediction&, const Model&)> edit);

std::vector<GradientHypothesis> score_gradient_mistakes();
/// Edits of the formula, enumerated.
std::vector<GradientHypothesis> gradient_formula_edits();
std::vector<GradientHypothesis> gradient_ring_mistakes();
std::vector<Suspect> gradient_suspects();

/// True when the gradients are wrong somewhere on the evidence for this case; adds to `diagnosis`
/// each mistake whose prediction agrees.
bool explain_gradients(const Subject& subject, const Case& shrunk, Diagnosis& diagnosis);

}  // namespace ringlab::verify
