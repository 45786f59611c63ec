// Hypotheses about gradients, for subjects whose forward pass is right.
#pragma once

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/gradients/gradient_model.h"

namespace ringlab::verify {

/// Edits on the way from inputs to gradients; empty where nothing is edited.
struct GradientEdits {
  std::function<void(GradientModel&)> before_ds, sums;
  std::function<void(GradientPrediction&, const Model&)> results;

  bool any() const { return before_ds || sums || results; }
};

struct GradientHypothesis {
  Suspect suspect;
  GradientEdits edits;

  GradientPrediction predict(const GradientModel& right) const;
};
/// Two mistakes in one program: the edits of `first` are made before those of `second`.
GradientHypothesis joined(const GradientHypothesis& first, const GradientHypothesis& second);

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
