#include "property_tests/diagnosis/telling_case.h"

#include <algorithm>
#include <utility>

#include "property_tests/case_runner.h"
#include "property_tests/diagnosis/events/event_mistakes.h"
#include "property_tests/diagnosis/evidence.h"
#include "property_tests/diagnosis/work_limit.h"
#include "property_tests/generators/cases.h"

namespace ringlab::verify {
namespace {

constexpr std::size_t kMostTellingCases = 120;
/// The work of telling cases, of which all hypotheses are computed.
constexpr std::int64_t kWorkOfTelling = 1 << 16;

/// Cases a little larger than one that is too small, the least first.
std::vector<Case> larger_cases(const Law& law, const Capabilities& can, const Case& smallest) {
  std::vector<Case> cases;
  for (const int ranks : {smallest.ranks, 2, 3}) {
    for (const std::int64_t tokens : {0, 2, 3, 4, 5, 6}) {
      for (const Family family : {smallest.family, Family::normal, Family::late_maximum}) {
        for (const std::int64_t channels : {0, 2}) {
          Case c = smallest;
          c.ranks = ranks;
          c.family = family;
          if (tokens > 0) c.shape.q_tokens = c.shape.kv_tokens = tokens;
          if (channels > 0) c.shape.head_dim = c.shape.v_dim = channels;
          c = shaped_case(law, can, fitted(std::move(c)), CaseOrigin::simpler);
          const bool is_larger = complexity(c) > complexity(smallest);
          if (is_larger && std::ranges::find(cases, c) == cases.end()) cases.push_back(c);
        }
      }
    }
  }
  std::ranges::stable_sort(cases, {}, [](const Case& c) { return complexity(c); });
  if (cases.size() > kMostTellingCases) cases.resize(kMostTellingCases);
  return cases;
}

bool holds_all(const std::vector<Suspect>& some, const std::vector<Suspect>& wanted) {
  return std::ranges::all_of(wanted, [&](const Suspect& suspect) {
    return std::ranges::find(some, suspect) != some.end();
  });
}

LawFailure failure_on(const Subject& subject, const Law& law, const LawFailure& before,
                      const Case& c, const LawResult& result) {
  LawFailure failure = before;
  failure.shrunk = c;
  failure.token = replay_token(subject, law, c);
  failure.message = result.message;
  failure.at = result.worst;
  failure.ending = result.ending;
  failure.rank = result.rank;
  failure.step = result.step;
  return repeated_failure(subject, law, std::move(failure));
}

/// A case that fewer mistakes explain; nothing where `smallest` tells, or none is found.
std::optional<LawFailure> telling_failure(const Subject& subject, const Law& law,
                                          const LawFailure& smallest,
                                          const std::vector<Suspect>& named) {
  std::size_t fewest = explained_alone(subject, smallest.shrunk).size();
  std::optional<LawFailure> telling;
  WorkLimit limit(kWorkOfTelling);
  for (const Case& c : larger_cases(law, subject.can, smallest.shrunk)) {
    if (fewest <= named.size() || !limit.admits(c)) break;
    const std::vector<Suspect> alone = explained_alone(subject, c);
    if (alone.size() >= fewest || !holds_all(alone, named)) continue;
    const LawResult result = run_law(subject, law, c);
    if (result.outcome != Outcome::broken) continue;
    telling = failure_on(subject, law, smallest, c, result);
    fewest = alone.size();
  }
  return telling;
}

}  // namespace

std::vector<Suspect> explained_alone(const Subject& subject, const Case& c) {
  if (const auto event = found_by_events(subject, {c})) return {event->suspect};
  const std::optional<Evidence> evidence = forward_evidence(subject, c);
  if (!evidence || !evidence->wrong) return {};
  const LseCompared lse = subject.can.has(Ability::lse) ? LseCompared::yes : LseCompared::no;
  std::vector<Suspect> suspects;
  for (const Hypothesis& hypothesis : forward_hypotheses()) {
    if (std::ranges::find(suspects, hypothesis.suspect) != suspects.end()) continue;
    const Prediction prediction = hypothesis.predict(evidence->scene);
    if (agrees(prediction, evidence->got, lse) &&
        tells_more(prediction, evidence->truth, evidence->got, lse)) {
      suspects.push_back(hypothesis.suspect);
    }
  }
  keep_simplest(suspects);
  return suspects;
}

void keep_what_tells(const Subject& subject, const Insight& insight, SubjectVerdict& verdict) {
  const std::vector<Suspect>& named = insight.diagnosis.explains;
  if (named.empty()) return;
  const auto law = std::ranges::find(verdict.laws, insight.of_law, &LawVerdict::id);
  if (law == verdict.laws.end() || !law->failure) return;
  if (law->failure->ending != Ending::answered) return;
  std::optional<LawFailure> telling =
      telling_failure(subject, find_law(law->id), *law->failure, named);
  if (telling) law->failure = std::move(telling);
}

}  // namespace ringlab::verify
