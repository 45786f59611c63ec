// Laws about gradients (verification P40-P57), and equality with the exact ones.
#include "property_tests/laws/gradients/backward.h"

#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/groups.h"

namespace ringlab::verify {
namespace {

/// Finds any wrong gradient beyond rounding. A case in which zeros would pass says nothing.
LawResult gradients_equal_reference(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const MeasuredGradients m = measure_gradients(subject, trial);
  const Judgement truth = judge(subject, trial.base);
  LawResult result =
      both(equal_exact(m), compared(compare_forward(m.outputs, truth.exact, truth.allowed)));
  if (result.outcome == Outcome::held && zero_gradients_would_pass(trial, m)) {
    return unbounded("gradients of zeros would pass");
  }
  return result;
}

}  // namespace

std::vector<Law> backward_laws() {
  std::vector<Law> laws = {
      {.id = "gradients_equal_reference",
       .name = "gradients_equal_the_exact_reference",
       .statement =
           "dq, dk and dv, and o and lse of the same call, lie within the a-priori bounds of "
           "the exact ones",
       .needs = {Ability::backward},
       .check = gradients_equal_reference,
       .keeps_modifiers = true}};
  for (const auto& more :
       {gradient_identity_laws(), gradient_bit_laws(), gradient_probe_laws(),
        gradient_symmetry_laws(), gradient_distribution_laws(), gradient_memory_laws()}) {
    laws.insert(laws.end(), more.begin(), more.end());
  }
  return laws;
}

}  // namespace ringlab::verify
