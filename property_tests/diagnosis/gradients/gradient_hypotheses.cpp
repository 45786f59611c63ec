#include "property_tests/diagnosis/gradients/gradient_hypotheses.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "property_tests/diagnosis/evidence.h"
#include "property_tests/diagnosis/formula/pairs.h"
#include "property_tests/diagnosis/work_limit.h"

namespace ringlab::verify {
namespace {

struct GradientEvidence {
  Scene scene;
  Tensor<double> dout;
  MeasuredGradients measured;
  bool wrong = false;
  GradientModel right = {};  ///< made once some gradient is wrong
};

std::optional<GradientEvidence> gradient_evidence(const Subject& subject, const Case& c) {
  try {
    const GradientTrial trial = make_gradient_trial(c);
    GradientEvidence evidence{{trial.base, subject.profile(trial.base.problem, trial.base.options)},
                              trial.dout,
                              measure_gradients(subject, trial)};
    evidence.wrong = equal_exact(evidence.measured).outcome == Outcome::broken;
    return evidence;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Answer, exact value and prediction of one of dq, dk and dv, with the tolerances of both.
struct Pairing {
  const Tensor<double>&got, &exact, &room, &predicted, &allowed;
};
std::vector<Pairing> pairings(const GradientEvidence& e, const GradientPrediction& p) {
  const MeasuredGradients& m = e.measured;
  return {{m.got.dq, m.exact.dq, m.allowed.dq, p.gradients.dq, p.allowed.dq},
          {m.got.dk, m.exact.dk, m.allowed.dk, p.gradients.dk, p.allowed.dk},
          {m.got.dv, m.exact.dv, m.allowed.dv, p.gradients.dv, p.allowed.dv}};
}

bool agrees(const std::vector<Pairing>& all) {
  return std::ranges::all_of(
      all, [](const Pairing& p) { return all_within(p.got, p.predicted, p.allowed); });
}

Foretold foretold(const std::vector<Pairing>& all) {
  Foretold count;
  for (const Pairing& p : all) {
    for (std::size_t n = 0; n < p.got.values().size(); ++n) {
      const double right = p.exact.values()[n], room = p.room.values()[n],
                   predicted = p.predicted.values()[n], allowed = p.allowed.values()[n];
      if (within(p.got.values()[n], right, room)) continue;
      ++count.wrong;
      count.unknown += std::isinf(allowed);
      count.foretold += !within(predicted, right, room + allowed) &&
                        within(p.got.values()[n], predicted, allowed);
    }
  }
  return count;
}

const HeldAgainst<GradientHypothesis, GradientEvidence>& held_against_gradients() {
  static const HeldAgainst<GradientHypothesis, GradientEvidence> held{
      [](const GradientHypothesis& hypothesis, const GradientEvidence& one) {
        return agrees(pairings(one, hypothesis.predict(one.right)));
      },
      [](const GradientHypothesis& hypothesis, const GradientEvidence& one) {
        return one.wrong ? foretold(pairings(one, hypothesis.predict(one.right))) : Foretold{};
      }};
  return held;
}

const std::vector<GradientHypothesis>& gradient_hypotheses() {
  static const std::vector<GradientHypothesis> all = [] {
    std::vector<GradientHypothesis> together = score_gradient_mistakes();
    for (const auto group : {gradient_formula_edits, gradient_ring_mistakes}) {
      for (GradientHypothesis& one : group()) together.push_back(std::move(one));
    }
    return together;
  }();
  return all;
}

}  // namespace

GradientPrediction GradientHypothesis::predict(const GradientModel& right) const {
  GradientModel model = right;
  if (edits.before_ds) edits.before_ds(model);
  differentiate(model);
  if (edits.sums) edits.sums(model);
  GradientPrediction prediction = sum_up(model);
  if (edits.results) edits.results(prediction, model.forward);
  return prediction;
}

GradientHypothesis joined(const GradientHypothesis& first, const GradientHypothesis& second) {
  return {both(first.suspect, second.suspect),
          {.before_ds = in_turn(first.edits.before_ds, second.edits.before_ds),
           .sums = in_turn(first.edits.sums, second.edits.sums),
           .results = in_turn(first.edits.results, second.edits.results)}};
}

GradientHypothesis before_ds(Suspect suspect, std::function<void(GradientModel&)> edit) {
  return {std::move(suspect), {.before_ds = std::move(edit), .sums = {}, .results = {}}};
}

GradientHypothesis in_sums(Suspect suspect, std::function<void(GradientModel&)> edit) {
  return {std::move(suspect), {.before_ds = {}, .sums = std::move(edit), .results = {}}};
}

GradientHypothesis in_results(Suspect suspect,
                              std::function<void(GradientPrediction&, const Model&)> edit) {
  return {std::move(suspect), {.before_ds = {}, .sums = {}, .results = std::move(edit)}};
}

std::vector<Suspect> gradient_suspects() {
  std::vector<Suspect> suspects;
  for (const GradientHypothesis& hypothesis : gradient_hypotheses()) {
    suspects.push_back(hypothesis.suspect);
  }
  return suspects;
}

bool explain_gradients(const Subject& subject, const Case& shrunk, Diagnosis& diagnosis) {
  std::vector<GradientEvidence> evidence;
  WorkLimit limit(kWorkOfSearch);
  for (const Case& c : evidence_cases(shrunk, subject.can)) {
    if (!limit.admits(c)) break;
    if (std::optional<GradientEvidence> one = gradient_evidence(subject, c)) {
      evidence.push_back(std::move(*one));
    }
  }
  std::stable_partition(evidence.begin(), evidence.end(),
                        [](const GradientEvidence& one) { return one.wrong; });
  if (evidence.empty() || !evidence.front().wrong) return false;
  for (GradientEvidence& one : evidence) one.right = make_gradient_model(one.scene, one.dout);
  diagnosis.cases = static_cast<int>(evidence.size());
  for (const GradientHypothesis& hypothesis : gradient_hypotheses()) {
    const auto known = std::ranges::find(diagnosis.explains, hypothesis.suspect);
    if (known != diagnosis.explains.end() || !held_against_gradients().holds(hypothesis, evidence))
      continue;
    diagnosis.explains.push_back(hypothesis.suspect);
  }
  keep_simplest(diagnosis.explains);
  if (!diagnosis.explains.empty()) return true;
  const auto right = std::ranges::find(evidence, false, &GradientEvidence::wrong);
  std::ranges::stable_sort(evidence.begin(), right, {}, [](const GradientEvidence& one) {
    return one.dout.values().size() * one.measured.got.dk.values().size();
  });
  for (const GradientHypothesis& pair :
       PairSearch<GradientHypothesis, GradientEvidence>(gradient_hypotheses(), evidence,
                                                        held_against_gradients())
           .found()) {
    if (std::ranges::find(diagnosis.explains, pair.suspect) == diagnosis.explains.end())
      diagnosis.explains.push_back(pair.suspect);
  }
  return true;
}

}  // namespace ringlab::verify
