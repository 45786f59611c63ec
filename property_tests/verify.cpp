// One law on random cases through RapidCheck: search, shrink, remember.
#include "property_tests/verify.h"

#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>
#include <utility>

#include "property_tests/generators/cases.h"

namespace ringlab::verify {
namespace {

// A failing case is made simpler for at most so long: what hangs may take its deadline every time.
constexpr int kMostShrinkTries = 600;
constexpr std::chrono::seconds kLongestShrink{20};
constexpr int kDiscardsPerCase = 10;

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
  Cases(const Law& law, const Capabilities& can) : law_(law), can_(can) {}

  rc::Shrinkable<Case> operator()(const rc::Random& random, int) const {
    rc::Random source = random;
    Draws draws(source.next());
    return shrinkable(shaped(random_case(draws)));
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
};

/// One search: runs the law, counts, and remembers the last failing case, which is the shrunk one.
class Search {
 public:
  Search(const Subject& subject, const Law& law, LawVerdict& verdict)
      : subject_(subject), law_(law), verdict_(verdict) {}

  rc::detail::CaseResult operator()(const Case& c) {
    using Type = rc::detail::CaseResult::Type;
    if (verdict_.failure && (++tries_ > kMostShrinkTries || Clock::now() > shrink_until_)) {
      return {Type::Success, "no more time to shrink"};
    }
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
      verdict_.failure = LawFailure{c, replay_token(subject_, law_, c), result.message, 0};
      return {Type::Failure, result.message};
    }
    if (!verdict_.failure) count_held(c, result);
    return {Type::Success, ""};
  }

  const std::string& last_discard() const { return last_discard_; }

 private:
  void count_held(const Case& c, const LawResult& result) {
    ++verdict_.cases;
    verdict_.worst_ratio = std::max(verdict_.worst_ratio, result.ratio);
    for (const std::string& name : classes_of(c)) ++verdict_.classes[name];
  }

  const Subject& subject_;
  const Law& law_;
  LawVerdict& verdict_;
  std::string last_discard_;
  int tries_ = 0;
  Clock::time_point shrink_until_;
};

/// Every law sees cases of its own.
std::uint64_t seed_of(std::uint64_t seed, const std::string& id) {
  std::uint64_t hash = 0xcbf29ce484222325ull ^ seed;  // FNV-1a
  for (const char letter : id)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ull;
  return hash;
}

std::vector<const Law*> chosen_laws(const Subject& subject, const VerifyOptions& options) {
  std::vector<const Law*> laws;
  if (options.laws.empty()) {
    for (const Law& law : all_laws()) laws.push_back(&law);
    for (const Law& law : laws_about_others()) {
      if (subject.can.foreign) laws.push_back(&law);
    }
  }
  for (const std::string& id : options.laws) laws.push_back(&find_law(id));
  return laws;
}

}  // namespace

LawVerdict verify_law(const Subject& subject, const Law& law, const VerifyOptions& options) {
  LawVerdict verdict;
  verdict.id = law.id;
  verdict.name = law.name;
  verdict.statement = law.statement;
  if (law.not_applicable) verdict.skipped = law.not_applicable(subject);
  if (law.exact && !subject.can.deterministic) verdict.skipped = "its bits differ from run to run";
  if (!verdict.skipped.empty()) return verdict;

  rc::detail::TestParams params;
  params.seed = seed_of(options.seed, law.id);
  params.maxSuccess = options.cases_per_law;
  params.maxDiscardRatio = kDiscardsPerCase;
  params.disableShrinking = !options.shrink;
  const auto search = std::make_shared<Search>(subject, law, verdict);
  // Mapping the generator keeps clear of RapidCheck's implicit parameters, which are not safe to
  // use from several threads.
  const rc::detail::Property property =
      rc::gen::map(rc::Gen<Case>(Cases(law, subject.can)), [search](const Case& c) {
        return rc::detail::CaseDescription{(*search)(c), {}, [] { return rc::detail::Example(); }};
      });
  ShrinkCounter counter;
  rc::detail::checkProperty(property, {law.id, law.name}, params, counter,
                            std::unordered_map<std::string, rc::detail::Reproduce>());
  if (verdict.failure) verdict.failure->shrinks = counter.accepted_shrinks;
  if (!verdict.failure && verdict.cases == 0) {
    verdict.skipped = "every case was discarded: " + search->last_discard();
  }
  return verdict;
}

SubjectVerdict verify_subject(const Subject& subject, const VerifyOptions& options) {
  const auto laws = chosen_laws(subject, options);
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

bool SubjectVerdict::passed() const {
  for (const LawVerdict& law : laws) {
    if (law.failure) return false;
  }
  return laws_passed() > 0;
}

int SubjectVerdict::laws_passed() const {
  int count = 0;
  for (const LawVerdict& law : laws) count += !law.failure && law.skipped.empty();
  return count;
}

int SubjectVerdict::laws_skipped() const {
  int count = 0;
  for (const LawVerdict& law : laws) count += !law.skipped.empty();
  return count;
}

}  // namespace ringlab::verify
