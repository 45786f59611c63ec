// Hypotheses: the answers that a named mistake would give on a case.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/model.h"

namespace ringlab::verify {

/// One case, ready to be predicted.
struct Scene {
  Trial trial;
  NumericsProfile profile;  ///< the subject's promises for this trial
};

/// Several hypotheses may share a suspect, as ways in which one mistake can be made.
struct Hypothesis {
  Suspect suspect;
  std::function<Prediction(const Scene&)> predict;
};

/// Keeps the simplest ones: where a subject has one chunk, its last key is that of each chunk, too.
void keep_simplest(std::vector<Suspect>& suspects);

/// A mistake in the inputs read: other tensors, another mask, another scale. The rest is right.
Hypothesis by_reading(Suspect suspect, std::function<void(Trial&)> edit);
/// A mistake between inputs and sums: in scores, or in how often a pair counts in acc and row_sum.
Hypothesis by_model(Suspect suspect, std::function<void(Model&)> edit);
/// A mistake at the end: o and lse are changed as a whole, their tolerances with them.
Hypothesis by_result(Suspect suspect, std::function<void(Prediction&, const Model&)> edit);

std::vector<Hypothesis> softmax_mistakes();
std::vector<Hypothesis> mask_mistakes();
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
std::vector<Hypothesis> stride_edits();
/// The hypotheses of all these files: about o and lse.
const std::vector<Hypothesis>& forward_hypotheses();

}  // namespace ringlab::verify
