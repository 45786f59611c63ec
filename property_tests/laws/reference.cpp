// The workhorse: O and lse inside the a-priori bound of the exact reference.
#include "property_tests/laws/findings.h"
#include "property_tests/laws/groups.h"

namespace ringlab::verify {
namespace {

LawResult equals_reference(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const AttentionOutput got = attend(subject, trial);
  const Judgement truth = judge(subject, trial);
  const Report report = compare_forward(got, truth.exact, truth.allowed);
  if (!report.passed()) return broken(report.summary());
  if (zeros_would_pass(truth)) return discarded("an output of zeros would pass");
  return held(report.worst_ratio());
}

}  // namespace

std::vector<Law> reference_laws() {
  return {{.id = "equals_reference",
           .name = "o_and_lse_equal_the_exact_reference",
           .statement = "O and lse lie within the a-priori bound of the fp64 reference, on every "
                        "shape, mask, layout and family of values",
           .exact = false,
           .shape_case = {},
           .not_applicable = applies_to_all,
           .check = equals_reference,
           .keeps_modifiers = true}};
}

}  // namespace ringlab::verify
