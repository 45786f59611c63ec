#include "property_tests/diagnosis/hypotheses.h"

#include <algorithm>
#include <iterator>

namespace ringlab::verify {

void keep_simplest(std::vector<Suspect>& suspects) {
  if (suspects.empty()) return;
  const int least = std::ranges::min(suspects, {}, &Suspect::terms).terms;
  std::erase_if(suspects, [=](const Suspect& suspect) { return suspect.terms > least; });
}

Hypothesis by_reading(Suspect suspect, std::function<void(Trial&)> edit) {
  return {std::move(suspect), [edit = std::move(edit)](const Scene& scene) {
            Trial trial = scene.trial;
            edit(trial);
            return finish(make_model(std::move(trial), scene.profile));
          }};
}

Hypothesis by_model(Suspect suspect, std::function<void(Model&)> edit) {
  return {std::move(suspect), [edit = std::move(edit)](const Scene& scene) {
            Model model = make_model(scene.trial, scene.profile);
            edit(model);
            return finish(model);
          }};
}

Hypothesis by_result(Suspect suspect, std::function<void(Prediction&, const Model&)> edit) {
  return {std::move(suspect), [edit = std::move(edit)](const Scene& scene) {
            const Model model = make_model(scene.trial, scene.profile);
            Prediction prediction = finish(model);
            edit(prediction, model);
            return prediction;
          }};
}

const std::vector<Hypothesis>& forward_hypotheses() {
  static const std::vector<Hypothesis> all = [] {
    std::vector<Hypothesis> together;
    for (const auto group :
         {softmax_mistakes, mask_mistakes, scale_mistakes, head_mistakes, lse_mistakes,
          ring_mistakes, placement_mistakes, wire_mistakes, query_mistakes, precision_mistakes,
          merge_mistakes, modifier_mistakes, merge_edits, count_edits, mask_edits, index_edits,
          holder_edits, layout_edits, stride_edits}) {
      std::vector<Hypothesis> more = group();
      std::move(more.begin(), more.end(), std::back_inserter(together));
    }
    return together;
  }();
  return all;
}

}  // namespace ringlab::verify
