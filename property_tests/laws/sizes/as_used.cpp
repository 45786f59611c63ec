// Heads, groups and lengths as models have them, and all claims of a subject two by two.
#include <algorithm>
#include <utility>
#include <vector>

#include "property_tests/joint/plan.h"
#include "property_tests/laws/findings.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"
#include "property_tests/laws/structure/memory_orders.h"
#include "property_tests/sampled_check.h"

namespace ringlab::verify {
namespace {

/// The cost of planned cases: simpler ones are tried so many times fewer.
constexpr int kAsUsedCost = 10;

/// The inputs in the memory order of the case, kept as long as this is.
class LaidOut {
 public:
  LaidOut(const Case& c, const Trial& trial) : input_(trial.input()) {
    constexpr std::int64_t kStream = -10;
    if (input_order(c) == InputOrder::dense) return;
    Draws draws(c.seed, {kStream});
    const auto place = input_order(c) == InputOrder::rows_apart ? guarded_rows : guarded;
    copies_ = {place(trial.data.q, draws), place(trial.data.k, draws), place(trial.data.v, draws)};
    input_ = copies_.input(trial.problem);
  }
  const AttentionInput& input() const { return input_; }

 private:
  GuardedInputs copies_;
  AttentionInput input_;
};

/// The input of those heads alone.
AttentionInput with_heads(AttentionInput input, const Indices& heads) {
  if (std::ssize(heads) == input.problem.shape.q_heads) return input;
  input.problem.shape.q_heads = input.q.extents.heads = std::ssize(heads);
  input.q.data += input.q.offset(0, heads.front(), 0, 0);
  input.q.strides.head *= heads[1] - heads[0];
  input.problem.modifiers = modifiers_of_heads(std::move(input.problem.modifiers), heads);
  return input;
}

/// Compares o and lse of some rows with the reference, which need not be exact beyond f32.
LawResult rows_equal_exact(const Subject& subject, const Case& c, const Trial& trial,
                           const AttentionOutput& got) {
  const ComparedRows rows = compared_rows(c);
  const AttentionInput input = with_heads(trial.input(), rows.heads);
  // Only one case of foreign code is at work at a time: the other threads have nothing to do.
  const ExactOptions options{.rows = rows.queries,
                             .threads = subject.can.has(Ability::foreign) ? 2 : 1};
  const ExactForward exact = sufficient_forward(input, options);
  const ForwardTolerance allowed =
      forward_tolerance(input, exact, subject.profile(trial.problem, trial.options), options);
  return compared(compare_forward({pick_heads(pick_tokens(got.out, rows.queries), rows.heads),
                                   pick_heads(pick_tokens(got.lse, rows.queries), rows.heads)},
                                  exact, allowed));
}

/// Holds as equals_reference does. Finds paths of a kernel that small cases do not take: tiles of a
/// width, a type and a group together, rows of thousands of keys, tails of such rows.
LawResult output_equals_exact(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const LaidOut inputs(c, trial);
  return rows_equal_exact(subject, c, trial,
                          run_checked(subject, inputs.input(), trial.options).output);
}

LawResult gradients_equal_exact(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const LaidOut inputs(c, trial.base);
  AttentionInput input = inputs.input();
  input.dout = trial.dout.view();
  MeasuredGradients measured = measure_gradients(subject, trial, input);
  LawResult forward = rows_equal_exact(subject, c, trial.base, measured.outputs);
  if (forward.outcome == Outcome::broken) return forward;
  return both(equal_exact(measured), forward);
}

template <const PlannedPass& Pass>
std::vector<Case> plan(const Capabilities& can, std::uint64_t seed, std::uint64_t round) {
  return planned_cases(can, Pass, seed, round);
}

}  // namespace

std::vector<Law> as_used_laws() {
  return {
      {.id = kAsUsedLaw,
       .name = "sizes_of_models_and_all_claims_two_by_two_give_what_the_reference_gives",
       .statement = "O and lse lie within their a-priori bounds where heads of 64, 128 and other "
                    "channels meet groups of 1, 4 and 8 heads, 512 to 8192 keys and each dtype, "
                    "and where any two claims of a subject meet.",
       .check = output_equals_exact,
       .keeps_modifiers = true,
       .shape_simpler_case = with_tokens,
       .cost = kAsUsedCost,
       .planned_cases = plan<kPlannedForward>},
      {.id = "as_used-gradients",
       .name =
           "gradients_at_sizes_of_models_and_of_all_claims_two_by_two_are_those_of_the_reference",
       .statement = "dq, dk, dv, O and lse lie within their a-priori bounds where sizes are "
                    "those of models, and where any two claims of a subject meet.",
       .needs = {Ability::backward},
       .check = gradients_equal_exact,
       .keeps_modifiers = true,
       .shape_simpler_case = with_tokens,
       .cost = kAsUsedCost,
       .planned_cases = plan<kPlannedGradients>}};
}

}  // namespace ringlab::verify
