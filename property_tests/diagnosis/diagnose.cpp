// Diagnosis of a failure: compares hypotheses with evidence.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/events/event_mistakes.h"
#include "property_tests/diagnosis/events/nan_words.h"
#include "property_tests/diagnosis/evidence.h"
#include "property_tests/diagnosis/experiments.h"
#include "property_tests/diagnosis/formula/pairs.h"
#include "property_tests/diagnosis/gradients/gradient_hypotheses.h"
#include "property_tests/diagnosis/law_suspects.h"
#include "property_tests/diagnosis/work_limit.h"
#include "property_tests/verify.h"

namespace ringlab::verify {
namespace {

/// The longest time of calls that end without an answer, together: a subject that hangs takes its
/// deadline at every call.
constexpr std::chrono::seconds kLongestSilence{10};

constexpr const char* kNotRepeated =
    "the same call gives other numbers each time: something is read before it is written, or while "
    "it is, or is left of an earlier call";
constexpr const char* kNotRepeatedToTheBit =
    "the same call gives other numbers each time, no further apart than rounding: sums are added "
    "up "
    "in an order that changes. A kernel that does so promises no equal bits (deterministic)";

/// The finding that two answers to one call tell; empty where they differ by no more than the
/// subject promises.
std::string changed_between(const Subject& subject, const Evidence& first, const Evidence& again) {
  if (same_answer(again.got, first.got)) return "";
  const ForwardTolerance& allowed = first.truth.allowed;
  const bool is_rounding =
      within_both_bounds("", {again.got, allowed}, {first.got, allowed}).outcome == Outcome::held;
  if (!is_rounding) return kNotRepeated;
  return subject.can.has(Ability::deterministic) ? kNotRepeatedToTheBit : "";
}

/// The subject, which is no longer called once it has cost too much without an answer.
Subject until_it_is_silent(Subject subject) {
  using Clock = std::chrono::steady_clock;
  const auto silent = std::make_shared<Clock::duration>(0);
  subject.run = [silent, run = std::move(subject.run)](const AttentionInput& input,
                                                       const RunOptions& options) {
    if (*silent >= kLongestSilence) throw Unsupported("is no longer called: it does not answer");
    const Clock::time_point begin = Clock::now();
    try {
      return run(input, options);
    } catch (...) {
      *silent += Clock::now() - begin;
      throw;
    }
  };
  return subject;
}

LseCompared compared(const Subject& subject) {
  return subject.can.has(Ability::lse) ? LseCompared::yes : LseCompared::no;
}

HeldAgainst<Hypothesis, Evidence> held_against(LseCompared lse) {
  return {[lse](const Hypothesis& hypothesis, const Evidence& one) {
            return hypothesis.agrees_with(one.got, one.scene, lse);
          },
          [lse](const Hypothesis& hypothesis, const Evidence& one) {
            if (!one.wrong) return Foretold{};
            return foretold(hypothesis.predict(one.scene), one.truth, one.got, lse);
          }};
}

void add_once(std::vector<Suspect>& suspects, const Suspect& suspect) {
  if (std::ranges::find(suspects, suspect) == suspects.end()) suspects.push_back(suspect);
}

/// Runs of the subject on cases like the failing one, wrong ones first: hypotheses fail on those.
std::vector<Evidence> gathered_evidence(const Subject& subject, const Case& failing) {
  std::vector<Evidence> all;
  WorkLimit limit(kWorkOfSearch);
  for (const Case& c : evidence_cases(failing, subject.can)) {
    if (!limit.admits(c)) break;
    if (std::optional<Evidence> one = forward_evidence(subject, c)) all.push_back(std::move(*one));
  }
  std::stable_partition(all.begin(), all.end(), [](const Evidence& one) { return one.wrong; });
  return all;
}

/// Looks for randomness and NaN; true when the same call always gives the same numbers.
bool look_at_answers(const Subject& subject, const std::vector<Evidence>& all,
                     Diagnosis& diagnosis) {
  for (const Evidence& evidence : all) {
    if (!evidence.wrong) break;
    const std::optional<Evidence> again = forward_evidence(subject, evidence.source);
    const std::string changed = again ? changed_between(subject, evidence, *again) : "";
    if (changed.empty()) continue;
    diagnosis.findings.push_back(changed);
    return false;
  }
  for (const Evidence& evidence : all) {
    const std::string words = evidence.wrong ? nan_words(evidence) : "";
    if (words.empty()) continue;
    diagnosis.findings.push_back(words);
    break;
  }
  return true;
}

/// The finding that one call, made a few times, has several answers: laws then break by chance.
/// Empty where it has one.
std::string changes_by_itself(const Subject& subject, Case failing) {
  constexpr int kRepeats = 5;
  failing.transport = TransportKind::simulated;  // messages arrive in one order
  const std::optional<Evidence> first = forward_evidence(subject, failing);
  for (int n = 0; first && n < kRepeats; ++n) {
    const std::optional<Evidence> again = forward_evidence(subject, failing);
    std::string changed = again ? changed_between(subject, *first, *again) : "";
    if (!changed.empty()) return changed;
  }
  return "";
}

/// Keeps the names that also agree with further cases, which they were not found with.
void keep_confirmed(const Subject& subject, const Case& failing,
                    const std::vector<Hypothesis>& hypotheses, Diagnosis& diagnosis) {
  if (diagnosis.explains.empty()) return;
  std::vector<Suspect> kept = diagnosis.explains;
  WorkLimit limit(kWorkOfSearch);
  for (const Case& c : confirming_cases(failing, subject.can)) {
    if (kept.empty() || !limit.admits(c)) break;
    const std::optional<Evidence> evidence = forward_evidence(subject, c);
    if (!evidence) continue;
    ++diagnosis.cases;
    std::erase_if(kept, [&](const Suspect& suspect) {
      return std::ranges::none_of(hypotheses, [&](const Hypothesis& hypothesis) {
        return hypothesis.suspect == suspect &&
               hypothesis.agrees_with(evidence->got, evidence->scene, compared(subject));
      });
    });
  }
  diagnosis.explains = std::move(kept);
}

void explain_forward(const Subject& subject, const Case& failing, const std::vector<Evidence>& all,
                     Diagnosis& diagnosis) {
  const auto held = held_against(compared(subject));
  for (const Hypothesis& hypothesis : forward_hypotheses()) {
    if (std::ranges::find(diagnosis.explains, hypothesis.suspect) != diagnosis.explains.end())
      continue;
    if (held.holds(hypothesis, all)) add_once(diagnosis.explains, hypothesis.suspect);
  }
  diagnosis.cases = static_cast<int>(all.size());
  keep_confirmed(subject, failing, forward_hypotheses(), diagnosis);
  keep_simplest(diagnosis.explains);
}

/// Explains wrong numbers by two edits.
void explain_by_pairs(const Subject& subject, const Case& failing, std::vector<Evidence> all,
                      Diagnosis& diagnosis) {
  const auto right = std::ranges::find(all, false, &Evidence::wrong);
  std::ranges::stable_sort(all.begin(), right, {}, [](const Evidence& one) {
    return one.scene.trial.shape().out().size() * one.scene.trial.shape().kv_tokens;
  });
  const std::vector<Hypothesis> pairs =
      PairSearch<Hypothesis, Evidence>(forward_hypotheses(), all, held_against(compared(subject)))
          .found();
  for (const Hypothesis& pair : pairs) add_once(diagnosis.explains, pair.suspect);
  keep_confirmed(subject, failing, pairs, diagnosis);
}

/// Shortens a long case to its beginning: hypotheses are computed pair by pair, and mistakes of any
/// length show there, too.
Case within_reach(Case c) {
  constexpr std::int64_t kMostPairs = 1 << 14;
  Shape& s = c.shape;
  while (s.batch * s.q_heads * s.q_tokens * s.kv_tokens > kMostPairs) {
    std::int64_t& longer = s.kv_tokens > s.q_tokens ? s.kv_tokens : s.q_tokens;
    longer /= 2;
  }
  return fitted(std::move(c));
}

}  // namespace

std::string Diagnosis::sentence() const {
  if (explains.empty()) return "";
  if (explains.size() == 1) return "this is: " + explains.front().what;
  std::string text = "consistent with: ";
  for (const Suspect& suspect : explains) {
    text += (&suspect == &explains.front() ? "" : "; or ") + suspect.what;
  }
  return text;
}

// The order of the questions is that of how much an answer explains: inputs that are written to
// spoil everything after them; what ranks ask of their network is wrong whatever numbers come out;
// wrong numbers come before laws, and laws before timing.
Diagnosis diagnose(const Subject& given, const Law& law, const Case& shrunk) {
  const Subject subject = until_it_is_silent(given);
  Diagnosis diagnosis;
  const Case looked_at = within_reach(shrunk);
  const std::vector<Evidence> all = gathered_evidence(subject, looked_at);
  const std::vector<Case> cases = evidence_cases(looked_at, subject.can);
  const auto note = [&](const Discovery& found) {
    if (found.mistake) diagnosis.explains.push_back(*found.mistake);
    if (!found.seen.empty()) diagnosis.findings.push_back(found.seen);
    return found.any();
  };
  if (std::ranges::any_of(all, &Evidence::writes_inputs)) {
    note(discovery_of(find_law("P39"), subject));
    return diagnosis;
  }
  if (const std::optional<EventFinding> event = found_by_events(subject, cases)) {
    // Wrong numbers of runs that end may say why others do not.
    if (event->waits_for_ever) explain_forward(subject, looked_at, all, diagnosis);
    if (diagnosis.explains.empty()) note({event->suspect, event->where});
    return diagnosis;
  }
  if (are_never_written(all)) {
    explain_forward(subject, looked_at, all, diagnosis);
    if (diagnosis.explains.empty()) note({kNeverWritten});
    return diagnosis;
  }
  if (std::ranges::any_of(all, &Evidence::wrong)) {
    const bool repeats = look_at_answers(subject, all, diagnosis);
    explain_forward(subject, looked_at, all, diagnosis);
    if (diagnosis.explains.empty() && repeats && !note(found_by_running_again(subject, all))) {
      explain_by_pairs(subject, looked_at, all, diagnosis);
    }
    return diagnosis;
  }
  if (subject.can.has(Ability::backward) && explain_gradients(subject, looked_at, diagnosis))
    return diagnosis;
  if (note({.seen = changes_by_itself(subject, looked_at)})) return diagnosis;
  if (note({found_by_masked_nan(subject, cases)})) return diagnosis;
  const bool is_sure = !subject.can.has(Ability::foreign) || breaks_each_time(subject, law, shrunk);
  if ((is_sure && note(discovery_of(law, subject))) || note(found_by_laws(subject, cases))) {
    return diagnosis;
  }
  note({found_by_rendezvous(subject, cases)});
  return diagnosis;
}

std::vector<Suspect> known_mistakes() {
  std::vector<Suspect> known;
  for (const Hypothesis& hypothesis : forward_hypotheses()) add_once(known, hypothesis.suspect);
  for (const Suspect& suspect : gradient_suspects()) add_once(known, suspect);
  for (const Suspect& suspect : law_suspects()) add_once(known, suspect);
  for (const Suspect& suspect : event_suspects()) add_once(known, suspect);
  add_once(known, kNeverWritten);
  return known;
}

}  // namespace ringlab::verify
