#include "property_tests/joint/planned_cases.h"

#include <algorithm>
#include <utility>

#include "property_tests/joint/plan.h"

namespace ringlab::verify {

PlannedCases::PlannedCases(const Law& law, const Capabilities& can, const VerifyOptions& options) {
  if (!law.planned_cases) return;
  const int customary = VerifyOptions().cases_per_law;
  // Every n-th case, beginning at another one in each round.
  const auto apart = static_cast<std::size_t>(
      options.planned_apart * (customary / std::clamp(options.cases_per_law, 1, customary)));
  std::vector<Case> plan = law.planned_cases(can, options.seed, options.round / apart);
  for (std::size_t i = options.round % apart; i < plan.size(); i += apart) {
    cases_.push_back(shaped_case(law, can, std::move(plan[i]), CaseOrigin::planned));
  }
}

LawResult run_planned(CaseRunner& runner, const Case& c) {
  constexpr std::uint64_t kOtherValues = 6;
  LawResult result = runner.run(c);
  int without_bounds = 0;
  for (std::uint64_t i = 1; i <= kOtherValues; ++i) {
    if (result.outcome != Outcome::discarded || result.refused) break;
    // Sizes are why, if the bounds of other values are infinite, too.
    without_bounds += result.bounds.infinite > 0;
    if (without_bounds > 1) break;
    Case other = c;
    other.seed += i * kPlannedSeeds;
    // Bounds of large products may tell nothing of rows of many keys.
    if (other.family == Family::cancelling) other.family = Family::heavy_key;
    result = runner.run(other);
  }
  return result;
}

const Case& PlannedCases::next() { return cases_[given_++ % cases_.size()]; }

}  // namespace ringlab::verify
