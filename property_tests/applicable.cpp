// The reason why a law does not apply to a subject.
#include <map>

#include "property_tests/generators/cases.h"
#include "property_tests/verify.h"

namespace ringlab::verify {
namespace {

/// The reason why a law that needs the ability does not apply.
std::string_view lack(Ability ability) {
  static const std::map<Ability, std::string_view> reasons = {
      {Ability::backward, "it computes no gradients"},
      {Ability::counts_traffic, "it does not count what it moves"},
      {Ability::divides_last, "weights are divided before they meet V"},
      {Ability::foreign, "its source is here"},
      {Ability::lse, "gives no lse"},
      {Ability::many_ranks, "it runs on one rank only"},
      {Ability::masked_may_be_nan, "what it masks may reach its results"},
      {Ability::ring_traffic, "its keys and values do not travel a ring"},
      {Ability::same_bits_per_row, "the bits of a row may depend on its neighbours"},
      {Ability::strided_inputs, "takes dense tensors only"},
      {Ability::sums_keys_in_order, "it does not sum the keys in their order"}};
  return reasons.at(ability);
}

}  // namespace

std::string Law::unmet(const Subject& subject) const {
  for (const Ability ability : needs) {
    if (!subject.can.has(ability)) return std::string(lack(ability));
  }
  return not_applicable ? not_applicable(subject) : "";
}

std::string why_not_applicable(const Law& law, const Subject& subject) {
  const bool needs_bits = law.exact && !law.or_within_bounds;
  if (needs_bits && !subject.can.has(Ability::deterministic))
    return "its bits differ from run to run";
  if (needs_bits && law.topic == kGradientsClass &&
      !subject.can.has(Ability::deterministic_gradients)) {
    return "the bits of its gradients differ from run to run";
  }
  return law.unmet(subject);
}

}  // namespace ringlab::verify
