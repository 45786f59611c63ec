#include "python/core/search.h"

#include <utility>

#include "property_tests/case_runner.h"
#include "property_tests/foreign_subject.h"
#include "property_tests/generators/cases.h"
#include "property_tests/joint/planned_cases.h"

namespace ringlab::python {
namespace {

using verify::Case;
using verify::Outcome;

/// Every law sees cases of its own.
std::uint64_t seed_of(std::uint64_t seed, const std::string& id) {
  std::uint64_t hash = 0xcbf29ce484222325ull ^ seed;  // FNV-1a
  for (const char letter : id)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ull;
  return hash;
}

class CaseSearch {
 public:
  CaseSearch(const verify::Subject& subject, const verify::Law& law,
             const std::function<bool()>& is_over)
      : subject_(subject),
        law_(law),
        is_over_(is_over),
        verdict_(verify::unheard(law)),
        runner_(subject, law, verdict_) {
    verdict_.skipped = verify::why_not_applicable(law, subject);
  }

  verify::LawVerdict run(const verify::VerifyOptions& options) {
    if (!verdict_.skipped.empty()) return verdict_;
    const std::int64_t most_discards =
        std::int64_t{verify::kDiscardsPerCase} * options.cases_per_law;
    verify::PlannedCases planned(law_, subject_.can, options);
    const auto wanted =
        law_.planned_cases ? planned.count() : static_cast<std::size_t>(options.cases_per_law);
    for (std::int64_t i = 0; is_wanted(i, wanted) && !is_over_(); ++i) {
      verify::Draws draws(seed_of(options.seed, law_.id), {i});
      const Case c = law_.planned_cases
                         ? planned.next()
                         : verify::shaped_case(law_, subject_.can, verify::random_case(draws),
                                               verify::CaseOrigin::drawn);
      const auto result = law_.planned_cases ? verify::run_planned(runner_, c) : runner_.run(c);
      if (result.outcome == Outcome::broken) {
        while (options.shrink && take_simpler()) {
        }
        break;
      }
      if (verdict_.discarded > most_discards) break;
    }
    runner_.conclude(is_over_);
    return verdict_;
  }

 private:
  /// True until so many cases held; of planned cases, until so many were tried.
  bool is_wanted(std::int64_t tried, std::size_t wanted) const {
    const std::int64_t counted = law_.planned_cases ? tried : verdict_.cases;
    return static_cast<std::size_t>(counted) < wanted;
  }

  /// True when there is a simpler case that is broken too; then it is the one remembered.
  bool take_simpler() {
    const Case last = verdict_.failure->shrunk;
    for (Case& candidate : verify::simpler_cases(last)) {
      const Case simpler = verify::shaped_case(law_, subject_.can, std::move(candidate),
                                               verify::CaseOrigin::simpler);
      // The law may have undone the step.
      if (verify::complexity(simpler) >= verify::complexity(last)) continue;
      if (is_over_() || runner_.shrunk_enough()) return false;
      if (runner_.run(simpler).outcome == Outcome::broken) return true;
    }
    return false;
  }

  const verify::Subject& subject_;
  const verify::Law& law_;
  const std::function<bool()>& is_over_;
  verify::LawVerdict verdict_;
  verify::CaseRunner runner_;
};

}  // namespace

verify::LawVerdict search_law(const verify::Subject& subject, const verify::Law& law,
                              const verify::VerifyOptions& options,
                              const std::function<bool()>& is_over) {
  verify::LawVerdict verdict = CaseSearch(subject, law, is_over).run(options);
  if (verdict.failure || !verdict.skipped.empty() ||
      !verify::is_tried_unannounced(subject, law.id)) {
    return verdict;
  }
  verify::VerifyOptions unannounced = options;
  unannounced.seed = options.seed ^ verify::unannounced_seed();
  unannounced.cases_per_law = verify::kUnannouncedCases;
  verdict.failure = CaseSearch(subject, law, is_over).run(unannounced).failure;
  return verdict;
}

}  // namespace ringlab::python
