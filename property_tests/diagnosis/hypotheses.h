// Hypotheses: the answers that a named mistake would give on a case.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/model/model.h"

namespace ringlab::verify {

/// One case, ready to be predicted.
struct Scene {
  Trial trial;
  NumericsProfile profile;                   ///< the subject's promises for this trial
  Model right = make_model(trial, profile);  ///< the right computation, which edits begin with
};

/// Edits on the way from inputs to an answer; empty where nothing is edited.
struct Edits {
  std::function<void(Trial&)> inputs;
  std::function<void(Model&)> sums;
  std::function<void(Prediction&, const Model&)> results;

  bool any() const { return inputs || sums || results; }
};

/// Several hypotheses may share a suspect, as ways in which one mistake can be made.
struct Hypothesis {
  Suspect suspect;
  std::function<Prediction(const Scene&)> predict;
  Edits edits = {};  ///< the prediction in parts, which others can join; empty where it has none

  /// True when every number of `got` lies within the prediction.
  bool agrees_with(const AttentionOutput& got, const Scene& scene, LseCompared lse) const;
};

Hypothesis by_edits(Suspect suspect, const Edits& edits);
/// Two mistakes in one program: the edits of `first` are made before those of `second`.
Hypothesis joined(const Hypothesis& first, const Hypothesis& second);
/// A mistake in the inputs read: other tensors, another mask, another scale. The rest is right.
Hypothesis by_reading(Suspect suspect, std::function<void(Trial&)> edit);
/// A mistake between inputs and sums: in scores, or in how often a pair counts in acc and row_sum.
Hypothesis by_model(Suspect suspect, std::function<void(Model&)> edit);
/// A mistake at the end: o and lse are changed as a whole, their tolerances with them.
Hypothesis by_result(Suspect suspect, std::function<void(Prediction&, const Model&)> edit);

std::vector<Hypothesis> softmax_mistakes();
std::vector<Hypothesis> mask_mistakes();
/// The part of mask_mistakes() that is about lengths.
std::vector<Hypothesis> length_mistakes();
std::vector<Hypothesis> scale_mistakes();
std::vector<Hypothesis> head_mistakes();
std::vector<Hypothesis> lse_mistakes();
std::vector<Hypothesis> ring_mistakes();
std::vector<Hypothesis> placement_mistakes();
std::vector<Hypothesis> wire_mistakes();
std::vector<Hypothesis> query_mistakes();
std::vector<Hypothesis> precision_mistakes();
std::vector<Hypothesis> merge_mistakes();
std::vector<Hypothesis> modifier_mistakes();
/// Edits of the formula, enumerated (formula/).
std::vector<Hypothesis> merge_edits();
std::vector<Hypothesis> count_edits();
std::vector<Hypothesis> mask_edits();
std::vector<Hypothesis> index_edits();
std::vector<Hypothesis> holder_edits();
std::vector<Hypothesis> layout_edits();
std::vector<Hypothesis> need_edits();
std::vector<Hypothesis> stride_edits();
/// The hypotheses of all these files, about o and lse: those that say what is read and what is seen
/// before those that say what is summed up of it, and how.
const std::vector<Hypothesis>& forward_hypotheses();

}  // namespace ringlab::verify
