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

}  // namespace ringlab::verify
