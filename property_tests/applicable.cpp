// The reason why a law does not apply to a subject.
#include "property_tests/generators/cases.h"
#include "property_tests/verify.h"

namespace ringlab::verify {

std::string why_not_applicable(const Law& law, const Subject& subject) {
  if (law.exact && !subject.can.deterministic) return "its bits differ from run to run";
  if (law.exact && law.topic == kGradientsClass && !subject.can.deterministic_gradients) {
    return "the bits of its gradients differ from run to run";
  }
  return law.not_applicable ? law.not_applicable(subject) : "";
}

}  // namespace ringlab::verify
