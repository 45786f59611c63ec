// The workhorse: O and lse inside the a-priori bound of the exact reference.
#include "property_tests/laws/findings.h"
#include "property_tests/laws/groups.h"

namespace ringlab::verify {
namespace {

LawResult equals_reference(const Subject& subject, const Case& c) {
  return equals_exact(measure(subject, make_trial(c)));
}

}  // namespace

std::vector<Law> reference_laws() {
  return {{.id = "equals_reference",
           .name = "o_and_lse_equal_the_exact_reference",
           .statement = "O and lse lie within the a-priori bound of the fp64 reference, on every "
                        "shape, mask, layout and family of values",
           .check = equals_reference,
           .keeps_modifiers = true}};
}

}  // namespace ringlab::verify
