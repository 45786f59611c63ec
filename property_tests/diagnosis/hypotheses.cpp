#include "property_tests/diagnosis/hypotheses.h"

#include <algorithm>
#include <iterator>

#include "property_tests/diagnosis/formula/pairs.h"

namespace ringlab::verify {

void keep_simplest(std::vector<Suspect>& suspects) {
  if (suspects.empty()) return;
  const int least = std::ranges::min(suspects, {}, &Suspect::terms).terms;
  std::erase_if(suspects, [=](const Suspect& suspect) { return suspect.terms > least; });
}

namespace {

/// The computation of a scene after edits of its inputs and sums.
Model edited(const Scene& scene, const Edits& edits) {
  const auto of_other_inputs = [&] {
    Trial trial = scene.trial;
    edits.inputs(trial);
    return make_model(std::move(trial), scene.profile);
  };
  Model model = edits.inputs ? of_other_inputs() : scene.right;
  if (edits.sums) edits.sums(model);
  return model;
}

}  // namespace

// Most hypotheses fail at one of the first rows, so rows are computed until one does.
bool Hypothesis::agrees_with(const AttentionOutput& got, const Scene& scene,
                             LseCompared lse) const {
  const bool is_a_model = edits.any() && !edits.results;
  return is_a_model ? agrees(edited(scene, edits), got, lse) : agrees(predict(scene), got, lse);
}

Hypothesis by_edits(Suspect suspect, const Edits& edits) {
  return {std::move(suspect),
          [edits](const Scene& scene) {
            const Model model = edited(scene, edits);
            Prediction prediction = finish(model);
            if (edits.results) edits.results(prediction, model);
            return prediction;
          },
          edits};
}

Hypothesis by_reading(Suspect suspect, std::function<void(Trial&)> edit) {
  return by_edits(std::move(suspect), {.inputs = std::move(edit), .sums = {}, .results = {}});
}

Hypothesis by_model(Suspect suspect, std::function<void(Model&)> edit) {
  return by_edits(std::move(suspect), {.inputs = {}, .sums = std::move(edit), .results = {}});
}

Hypothesis by_result(Suspect suspect, std::function<void(Prediction&, const Model&)> edit) {
  return by_edits(std::move(suspect), {.inputs = {}, .sums = {}, .results = std::move(edit)});
}

Hypothesis joined(const Hypothesis& first, const Hypothesis& second) {
  return by_edits(both(first.suspect, second.suspect),
                  {.inputs = in_turn(first.edits.inputs, second.edits.inputs),
                   .sums = in_turn(first.edits.sums, second.edits.sums),
                   .results = in_turn(first.edits.results, second.edits.results)});
}

const std::vector<Hypothesis>& forward_hypotheses() {
  static const std::vector<Hypothesis> all = [] {
    std::vector<Hypothesis> together;
    for (const auto group :
         {scale_mistakes, head_mistakes,      modifier_mistakes, mask_mistakes,
          mask_edits,     holder_edits,       layout_edits,      stride_edits,
          index_edits,    wire_mistakes,      query_mistakes,    need_edits,
          ring_mistakes,  placement_mistakes, count_edits,       softmax_mistakes,
          merge_mistakes, merge_edits,        lse_mistakes,      precision_mistakes}) {
      std::vector<Hypothesis> more = group();
      std::move(more.begin(), more.end(), std::back_inserter(together));
    }
    return together;
  }();
  return all;
}

}  // namespace ringlab::verify
