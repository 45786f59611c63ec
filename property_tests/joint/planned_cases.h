// The planned cases of a law that a search tries, one after the other.
#pragma once

#include <cstddef>
#include <vector>

#include "property_tests/case_runner.h"
#include "property_tests/verify.h"

namespace ringlab::verify {

/// The planned cases, as the subject can take them: all of them with 40 cases per law or more, else
/// a share of the plan, another one in each round. None where the law has no plan.
class PlannedCases {
 public:
  PlannedCases(const Law& law, const Capabilities& can, const VerifyOptions& options);
  std::size_t count() const { return cases_.size(); }
  /// The next case, after the last one the first again.
  const Case& next();

 private:
  std::vector<Case> cases_;
  std::size_t given_ = 0;
};

/// Runs a planned case, and where its bounds tell nothing the case with other values, a few times: once
/// where they are infinite.
LawResult run_planned(CaseRunner& runner, const Case& c);

}  // namespace ringlab::verify
