// Sizes at and beside powers of two, up to 65537 and beyond.
#include "property_tests/joint/plan.h"
#include "property_tests/laws/findings.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"

namespace ringlab::verify {
namespace {

constexpr int kFarCost = 10;

/// Holds as equals_reference does. Finds numbers of keys, queries, heads and documents, positions
/// and distances that are kept in too few bits, under each mask.
LawResult far_output_equals_exact(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const AttentionInput input = trial.input();
  const AttentionOutput got = attend(subject, trial);
  const ExactForward exact = sufficient_forward(input);
  return compared(compare_forward(
      got, exact, forward_tolerance(input, exact, subject.profile(trial.problem, trial.options))));
}

LawResult far_gradients_equal_exact(const Subject& subject, const Case& c) {
  return equal_exact(measure_gradients(subject, make_gradient_trial(c)));
}

template <bool FewPairs>
std::vector<Case> far_plan(const Capabilities& can, std::uint64_t seed, std::uint64_t round) {
  return far_cases(can, FewPairs, seed, round);
}

}  // namespace

std::vector<Law> far_size_laws() {
  return {{.id = "far_sizes",
           .name = "sizes_beside_powers_of_two_give_what_the_exact_reference_gives",
           .statement = "O and lse lie within their a-priori bounds where keys, queries, heads or "
                        "documents number 2^7, 2^8, 2^12, 2^15 or 2^16, or one more or less, under "
                        "each mask, with one key that outweighs the others.",
           .check = far_output_equals_exact,
           .keeps_modifiers = true,
           .shape_simpler_case = with_tokens,
           .cost = kFarCost,
           .planned_cases = far_plan<false>},
          {.id = "far_sizes-gradients",
           .name = "gradients_at_sizes_beside_powers_of_two_are_those_of_the_reference",
           .statement = "dq, dk and dv lie within their a-priori bounds where keys, queries, heads "
                        "or documents number 2^7 to 2^16, or one more or less.",
           .needs = {Ability::backward},
           .check = far_gradients_equal_exact,
           .keeps_modifiers = true,
           .shape_simpler_case = with_tokens,
           .cost = kFarCost,
           .planned_cases = far_plan<true>}};
}

}  // namespace ringlab::verify
