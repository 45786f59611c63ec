#include "property_tests/diagnosis/telling_case.h"

#include <algorithm>
#include <map>
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

/// True when some rank has nothing to do, or there are more ranks than a person follows.
bool is_for_machines(const Case& c) {
  constexpr int kMostRanks = 3;
  return c.ranks > kMostRanks || c.shape.q_tokens < c.ranks || c.shape.kv_tokens < c.ranks;
}

/// The numbers of Q, K and V that occur once.
int distinct_numbers(const Case& c) {
  const Trial trial = make_trial(c);
  std::map<double, int> times;
  for (const Tensor<double>* x : {&trial.data.q, &trial.data.k, &trial.data.v}) {
    for (const double value : x->values()) ++times[value];
  }
  return static_cast<int>(
      std::ranges::count_if(times, [](const auto& one) { return one.second == 1; }));
}

/// The seed by which fewest numbers of a case are equal.
Case with_distinct_numbers(const Case& c) {
  constexpr std::uint64_t kMostSeeds = 32;
  Case best = c;
  int most = -1;
  for (std::uint64_t seed = 1; seed <= kMostSeeds; ++seed) {
    Case one = c;
    one.seed = seed;
    const int distinct = distinct_numbers(one);
    if (distinct <= most) continue;
    most = distinct;
    best = std::move(one);
  }
  return best;
}

/// Cases that a person works out by hand: a token or two on each of two or three ranks, one head of
/// one or two channels, small whole numbers; with a causal mask, where positions count, too.
std::vector<Case> cases_for_people(const Law& law, const Capabilities& can, const Case& smallest) {
  std::vector<Case> cases;
  for (const int tokens_of_a_rank : {1, 2}) {
    for (const int ranks : {2, 3}) {
      for (const std::int64_t channels : {1, 2}) {
        for (const CaseMask& mask : {smallest.mask, CaseMask("causal")}) {
          Case c = smallest;
          c.ranks = ranks;
          c.mask = mask;
          c.shape.q_tokens = c.shape.kv_tokens = ranks * tokens_of_a_rank;
          c.shape.head_dim = c.shape.v_dim = channels;
          c.family = Family::small_ints;
          c = shaped_case(law, can, fitted(std::move(c)), CaseOrigin::simpler);
          c = with_distinct_numbers(c);
          if (!is_for_machines(c) && std::ranges::find(cases, c) == cases.end()) cases.push_back(c);
        }
      }
    }
  }
  return cases;
}

/// The first of cases_for_people() that breaks the law and is explained by what is named alone, else
/// the first of those that fewest mistakes explain.
std::optional<LawFailure> failure_for_people(const Subject& subject, const Law& law,
                                             const LawFailure& smallest,
                                             const std::vector<Suspect>& named) {
  if (!is_for_machines(smallest.shrunk)) return std::nullopt;
  std::optional<LawFailure> found;
  std::size_t fewest = 0;
  WorkLimit limit(kWorkOfTelling);
  for (const Case& c : cases_for_people(law, subject.can, smallest.shrunk)) {
    if (!limit.admits(c)) break;
    const LawResult result = run_law(subject, law, c);
    if (result.outcome != Outcome::broken || result.ending != smallest.ending) continue;
    const std::vector<Suspect> alone = explained_alone(subject, c);
    const bool is_telling = alone == named;
    if (found && !is_telling && alone.size() >= fewest) continue;
    found = failure_on(subject, law, smallest, c, result);
    fewest = alone.size();
    if (is_telling) break;
  }
  return found;
}

/// The answer to a case of few numbers.
std::optional<ShownAnswer> shown_answer(const Subject& subject, const Case& c) {
  constexpr std::int64_t kMostNumbers = 64;
  const Shape& s = c.shape;
  if (s.batch * s.q_heads * s.q_tokens * s.v_dim > kMostNumbers) return std::nullopt;
  const std::optional<Evidence> one = forward_evidence(subject, c);
  if (!one || !one->wrong) return std::nullopt;
  const auto off = [](const Tensor<double>& got, const Tensor<double>& right,
                      const Tensor<double>& allowed) {
    return mapped(got, [&](double x, auto b, auto h, auto t, auto k) {
      return within(x, right(b, h, t, k), allowed(b, h, t, k)) ? 0.0 : 1.0;
    });
  };
  ShownAnswer shown{one->got,
                    {off(one->got.out, one->truth.output.out, one->truth.allowed.out),
                     off(one->got.lse, one->truth.output.lse, one->truth.allowed.lse)}};
  if (!subject.can.has(Ability::lse)) shown.off.lse = Tensor<double>(s.lse());
  return shown;
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
    if (!hypothesis.agrees_with(evidence->got, evidence->scene, lse)) continue;
    const Prediction prediction = hypothesis.predict(evidence->scene);
    if (foretold(prediction, evidence->truth, evidence->got, lse).foretold > 0) {
      suspects.push_back(hypothesis.suspect);
    }
  }
  keep_simplest(suspects);
  return suspects;
}

void keep_what_tells(const Subject& subject, const Insight& insight, SubjectVerdict& verdict) {
  const std::vector<Suspect>& named = insight.diagnosis.explains;
  const auto law = std::ranges::find(verdict.laws, insight.of_law, &LawVerdict::id);
  if (law == verdict.laws.end() || !law->failure) return;
  if (law->failure->ending != Ending::answered) return;
  const auto keep = [&](std::optional<LawFailure> better) {
    if (better) law->failure = std::move(better);
  };
  if (!named.empty()) keep(telling_failure(subject, find_law(law->id), *law->failure, named));
  if (!law->failure->doubt().empty()) return;
  keep(failure_for_people(subject, find_law(law->id), *law->failure, named));
  law->failure->answer = shown_answer(subject, law->failure->shrunk);
}

}  // namespace ringlab::verify
