// Tries one law on random cases through RapidCheck: search, shrink, remember.
#include "property_tests/verify.h"

#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>
#include <utility>

#include "property_tests/case_runner.h"
#include "property_tests/foreign_subject.h"
#include "property_tests/generators/cases.h"
#include "property_tests/generators/reach.h"
#include "property_tests/joint/planned_cases.h"

namespace ringlab::verify {
namespace {

using Clock = std::chrono::steady_clock;

/// A listener that prints nothing, unlike RapidCheck's own.
struct Silence : rc::detail::TestListener {
  void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
  void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
  void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
};

/// The law's cases: made by the law's shape_case, and kept within the subject's abilities.
class Cases {
 public:
  Cases(const Law& law, const Capabilities& can, std::uint64_t round, PlannedCases planned)
      : law_(law),
        can_(can),
        round_(round),
        planned_(std::make_shared<PlannedCases>(std::move(planned))) {}

  rc::Shrinkable<Case> operator()(const rc::Random& random, int) const {
    if (law_.planned_cases) return shrinkable(planned_->next());
    rc::Random source = random;
    Draws draws(source.next());
    Case c = reached_case(draws, random_case(draws), reach_of_round(round_));
    c.seed += round_ * kCaseSeeds;  // keeps the rounds apart
    return shrinkable(shaped_case(law_, can_, std::move(c), CaseOrigin::drawn));
  }

 private:
  rc::Shrinkable<Case> shrinkable(const Case& c) const {
    return rc::shrinkable::shrinkRecur(c, [self = *this](const Case& larger) {
      std::vector<Case> kept;
      for (Case& candidate : simpler_cases(larger)) {
        Case simpler = shaped_case(self.law_, self.can_, std::move(candidate), CaseOrigin::simpler);
        // The law may have undone the step: only a strictly simpler case keeps shrinking finite.
        if (complexity(simpler) < complexity(larger)) kept.push_back(std::move(simpler));
      }
      return rc::seq::fromContainer(std::move(kept));
    });
  }

  Law law_;
  Capabilities can_;
  std::uint64_t round_;
  std::shared_ptr<PlannedCases> planned_;
};

/// One search, as RapidCheck calls it; the last failing case is the shrunk one.
class Search {
 public:
  Search(const Subject& subject, const Law& law, const VerifyOptions& options, LawVerdict& verdict)
      : options_(options),
        is_planned_(law.planned_cases != nullptr),
        verdict_(verdict),
        runner_(subject, law, verdict) {}

  rc::detail::CaseResult operator()(const Case& c) {
    using Type = rc::detail::CaseResult::Type;
    if (is_over()) return {Type::Success, "no more time"};
    const bool is_first = is_planned_ && !verdict_.failure;
    const LawResult result = is_first ? run_planned(runner_, c) : runner_.run(c);
    // A planned case that is discarded has no other in its place.
    if (result.outcome == Outcome::discarded) {
      return {is_planned_ ? Type::Success : Type::Discard, result.message};
    }
    if (result.outcome == Outcome::broken) return {Type::Failure, result.message};
    return {Type::Success, ""};
  }

  /// Completes the verdict after the last case.
  void conclude() {
    const bool says_enough =
        verdict_.failure && verdict_.failure->ending == Ending::crashed && !options_.shrink;
    runner_.conclude([&] { return says_enough || haste() == Haste::at_once; });
  }

 private:
  Haste haste() const { return options_.haste ? options_.haste() : Haste::none; }
  bool is_over() {
    const Haste now = haste();
    if (!verdict_.failure) return now != Haste::none;
    return now == Haste::at_once || runner_.shrunk_enough();
  }

  const VerifyOptions& options_;
  bool is_planned_;
  LawVerdict& verdict_;
  CaseRunner runner_;
};

/// The seed of a search: every law sees cases of its own in every round.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t round, std::string id) {
  if (round > 0) id += "#" + std::to_string(round);
  std::uint64_t hash = 0xcbf29ce484222325ull ^ seed;  // FNV-1a
  for (const char letter : id)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ull;
  return hash;
}

LawVerdict searched(const Subject& subject, const Law& law, const VerifyOptions& options) {
  LawVerdict verdict = unheard(law);
  verdict.skipped.clear();

  rc::detail::TestParams params;
  params.seed = seed_of(options.seed, options.round, law.id);
  PlannedCases planned(law, subject.can, options);
  if (law.planned_cases && planned.count() == 0) return verdict;
  params.maxSuccess = law.planned_cases ? static_cast<int>(planned.count())
                                        : std::max(1, options.cases_per_law / law.cost);
  params.maxDiscardRatio = kDiscardsPerCase;
  params.disableShrinking = !options.shrink;
  const auto search = std::make_shared<Search>(subject, law, options, verdict);
  // Mapping the generator keeps clear of RapidCheck's implicit parameters, which are not safe to
  // use from several threads.
  const rc::detail::Property property = rc::gen::map(
      rc::Gen<Case>(Cases(law, subject.can, options.round, std::move(planned))),
      [search](const Case& c) {
        return rc::detail::CaseDescription{(*search)(c), {}, [] { return rc::detail::Example(); }};
      });
  Silence silence;
  rc::detail::checkProperty(property, {law.id, law.name}, params, silence,
                            std::unordered_map<std::string, rc::detail::Reproduce>());
  search->conclude();
  return verdict;
}

}  // namespace

LawVerdict verify_law(const Subject& subject, const Law& law, const VerifyOptions& options) {
  LawVerdict verdict = unheard(law);
  verdict.skipped = why_not_applicable(law, subject);
  if (!verdict.skipped.empty()) return verdict;
  verdict = searched(subject, law, options);
  if (verdict.failure || !is_tried_unannounced(subject, law.id)) return verdict;
  VerifyOptions unannounced = options;
  unannounced.seed = options.seed ^ unannounced_seed();
  unannounced.cases_per_law = kUnannouncedCases;
  verdict.failure = searched(subject, law, unannounced).failure;
  return verdict;
}

SubjectVerdict verify_subject(const Subject& subject, const VerifyOptions& options) {
  const auto laws = laws_for(subject, options);
  const auto start = Clock::now();
  SubjectVerdict verdict;
  verdict.subject = subject.name;
  const int total = static_cast<int>(laws.size());
  for (const Law* law : laws) {
    const int done = static_cast<int>(verdict.laws.size());
    if (options.progress) options.progress(done, total, law->id);
    verdict.laws.push_back(verify_law(subject, *law, options));
  }
  if (options.progress) options.progress(total, total, "");
  verdict.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return verdict;
}

}  // namespace ringlab::verify
