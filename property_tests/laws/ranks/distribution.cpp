// Laws about ranks, layouts, transports and traffic (verification P58-P72).
#include "property_tests/laws/ranks/distribution.h"

#include "property_tests/laws/groups.h"

namespace ringlab::verify {

std::vector<Law> distribution_laws() {
  std::vector<Law> laws = placement_laws();
  for (const auto& more : {merging_laws(), traffic_laws(), schedule_laws()}) {
    laws.insert(laws.end(), more.begin(), more.end());
  }
  return laws;
}

std::string needs_many_ranks(const Subject& subject) {
  return subject.can.many_ranks ? "" : "it runs on one rank only";
}

std::string needs_counts(const Subject& subject) {
  if (!subject.can.many_ranks) return needs_many_ranks(subject);
  return subject.can.counts_traffic ? "" : "it does not count what it moves";
}

}  // namespace ringlab::verify
