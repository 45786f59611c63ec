// Hypotheses about gradients, for subjects whose forward pass is right.
#pragma once

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/gradient_model.h"

namespace ringlab::verify {

struct GradientHypothesis {
  Suspect suspect;
  std::function<GradientPrediction(const Scene&, const Tensor<double>& dout)> predict;
};

/// A mistake before dS.
GradientHypothesis before_ds(Suspect suspect, std::function<void(GradientModel&)> edit);
/// A mistake in what is summed up.
GradientHypothesis in_sums(Suspect suspect, std::function<void(GradientModel&)> edit);
/// A mistake at the end.
GradientHypothesis in_results(Suspect suspect,
                              std::function<void(GradientPrediction&, const Model&)> edit);

std::vector<GradientHypothesis> score_gradient_mistakes();
std::vector<GradientHypothesis> gradient_ring_mistakes();
std::vector<Suspect> gradient_suspects();

/// Whether the gradients are wrong somewhere on the evidence for this case; adds what explains it.
bool explain_gradients(const Subject& subject, const Case& shrunk, Diagnosis& diagnosis);

}  // namespace ringlab::verify
