// One law on random cases through RapidCheck: search, shrink, remember.
#include "property_tests/verify.h"

#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>
#include <utility>

#include "property_tests/generators/cases.h"
#include "property_tests/sha256.h"

namespace ringlab::verify {
namespace {

// A failing case is made simpler for at most so long: what hangs may take its deadline every time.
constexpr int kMostShrinkTries = 600;
constexpr std::chrono::seconds kLongestShrink{20};
constexpr int kDiscardsPerCase = 10;
constexpr const char* kNoTime = "no time was left";

using Clock = std::chrono::steady_clock;

/// Counts accepted shrinks; RapidCheck's own listener would print.
struct ShrinkCounter : rc::detail::TestListener {
  void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
  void onShrinkTried(const rc::detail::CaseDescription&, bool accepted) override {
    if (accepted) ++accepted_shrinks;
  }
  void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
  int accepted_shrinks = 0;
};

/// The law's cases: made by the law's shape_case, and kept within what the subject can do.
class Cases {
 public:
  Cases(const Law& law, const Capabilities& can, std::uint64_t round)
      : law_(law), can_(can), round_(round) {}

  rc::Shrinkable<Case> operator()(const rc::Random& random, int) const {
    rc::Random source = random;
    Draws draws(source.next());
    Case c = random_case(draws);
    c.seed += round_ * kCaseSeeds;  // what keeps the rounds apart
    return shrinkable(shaped(std::move(c)));
  }

 private:
  Case shaped(Case c) const {
    c = limited_to(std::move(c), can_);
    if (!law_.keeps_modifiers) c.modifiers = {};
    return law_.shape_case ? fitted(law_.shape_case(std::move(c))) : c;
  }

  rc::Shrinkable<Case> shrinkable(const Case& c) const {
    return rc::shrinkable::shrinkRecur(c, [self = *this](const Case& larger) {
      std::vector<Case> kept;
      for (Case& candidate : simpler_cases(larger)) {
        Case simpler = self.shaped(std::move(candidate));
        // The law may have undone the step: only a strictly simpler case keeps shrinking finite.
        if (complexity(simpler) < complexity(larger)) kept.push_back(std::move(simpler));
      }
      return rc::seq::fromContainer(std::move(kept));
    });
  }

  Law law_;
  Capabilities can_;
  std::uint64_t round_;
};

/// One search: runs the law, counts, and remembers the last failing case, which is the shrunk one.
class Search {
 public:
  Search(const Subject& subject, const Law& law, const VerifyOptions& options, LawVerdict& verdict)
      : subject_(subject), law_(law), options_(options), verdict_(verdict) {}

  rc::detail::CaseResult operator()(const Case& c) {
    using Type = rc::detail::CaseResult::Type;
    if (is_over()) return {Type::Success, "no more time"};
    if (!verdict_.failure) tried_.add(to_token(c) + "\n");
    const LawResult result = run_law(subject_, law_, c);
    if (result.outcome == Outcome::discarded) {
      if (!verdict_.failure) {
        ++verdict_.discarded;
        last_discard_ = result.message;
      }
      return {Type::Discard, result.message};
    }
    if (result.outcome == Outcome::broken) {
      if (!verdict_.failure) shrink_until_ = Clock::now() + kLongestShrink;
      remember(c, result);
      return {Type::Failure, result.message};
    }
    if (!verdict_.failure) count_held(c, result);
    return {Type::Success, ""};
  }

  /// What remains to be said when all cases have been tried.
  void conclude() {
    const bool none_tried = verdict_.cases == 0 && verdict_.discarded == 0 && !verdict_.failure;
    if (!none_tried) verdict_.case_digest = tried_.finish();
    if (none_tried)
      verdict_.skipped = kNoTime;
    else if (!verdict_.failure && verdict_.cases == 0)
      verdict_.skipped = "every case was discarded: " + last_discard_;
  }

 private:
  bool is_over() {
    const Haste haste = options_.haste ? options_.haste() : Haste::none;
    if (!verdict_.failure) return haste != Haste::none;
    return haste == Haste::at_once || ++tries_ > kMostShrinkTries || Clock::now() > shrink_until_;
  }

  void remember(const Case& c, const LawResult& result) {
    verdict_.failure = LawFailure{.shrunk = c,
                                  .token = replay_token(subject_, law_, c),
                                  .message = result.message,
                                  .shrinks = 0,
                                  .at = result.worst,
                                  .ending = result.ending,
                                  .rank = result.rank,
                                  .step = result.step};
  }

  void count_held(const Case& c, const LawResult& result) {
    ++verdict_.cases;
    if (result.ratio > verdict_.worst_ratio) {
      verdict_.worst_ratio = result.ratio;
      verdict_.worst_at = result.worst;
    }
    for (const std::string& name : classes_of(c)) ++verdict_.classes[name];
    if (law_.topic == kGradientsClass) ++verdict_.classes[kGradientsClass];
  }

  const Subject& subject_;
  const Law& law_;
  const VerifyOptions& options_;
  LawVerdict& verdict_;
  Sha256 tried_;
  std::string last_discard_;
  int tries_ = 0;
  Clock::time_point shrink_until_;
};

/// Every law sees cases of its own in every round.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t round, std::string id) {
  if (round > 0) id += "#" + std::to_string(round);
  std::uint64_t hash = 0xcbf29ce484222325ull ^ seed;  // FNV-1a
  for (const char letter : id)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ull;
  return hash;
}

}  // namespace

LawVerdict unheard(const Law& law) {
  LawVerdict verdict;
  verdict.id = law.id;
  verdict.name = law.name;
  verdict.statement = law.statement;
  verdict.topic = law.topic;
  verdict.skipped = kNoTime;
  return verdict;
}

LawVerdict verify_law(const Subject& subject, const Law& law, const VerifyOptions& options) {
  LawVerdict verdict = unheard(law);
  verdict.skipped.clear();
  verdict.skipped = why_not_applicable(law, subject);
  if (!verdict.skipped.empty()) return verdict;

  rc::detail::TestParams params;
  params.seed = seed_of(options.seed, options.round, law.id);
  params.maxSuccess = options.cases_per_law;
  params.maxDiscardRatio = kDiscardsPerCase;
  params.disableShrinking = !options.shrink;
  const auto search = std::make_shared<Search>(subject, law, options, verdict);
  // Mapping the generator keeps clear of RapidCheck's implicit parameters, which are not safe to
  // use from several threads.
  const rc::detail::Property property =
      rc::gen::map(rc::Gen<Case>(Cases(law, subject.can, options.round)), [search](const Case& c) {
        return rc::detail::CaseDescription{(*search)(c), {}, [] { return rc::detail::Example(); }};
      });
  ShrinkCounter counter;
  rc::detail::checkProperty(property, {law.id, law.name}, params, counter,
                            std::unordered_map<std::string, rc::detail::Reproduce>());
  if (verdict.failure) verdict.failure->shrinks = counter.accepted_shrinks;
  search->conclude();
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
