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

namespace ringlab::verify {
namespace {

/// The cost of planned cases: simpler ones are tried so many times fewer.
constexpr int kAsUsedCost = 10;

/// The inputs in the memory order of the case.
class LaidOut {
 public:
  LaidOut(const Case& c, const Trial& trial) : problem_(trial.problem), dense_(trial.input()) {
    constexpr std::int64_t kStream = -10;
    is_dense_ = input_order(c) == InputOrder::dense;
    if (is_dense_) return;
    Draws draws(c.seed, {kStream});
    const auto place = input_order(c) == InputOrder::rows_apart ? guarded_rows : guarded;
    copies_ = {place(trial.data.q, draws), place(trial.data.k, draws), place(trial.data.v, draws)};
  }
  AttentionInput input() const { return is_dense_ ? dense_ : copies_.input(problem_); }

 private:
  const Problem& problem_;
  AttentionInput dense_;
  bool is_dense_ = true;
  GuardedInputs copies_;
};

/// The input of those heads alone.
AttentionInput with_heads(AttentionInput input, const Indices& heads) {
  if (std::ssize(heads) == input.problem.shape.q_heads) return input;
  input.problem.shape.q_heads = input.q.extents.heads = std::ssize(heads);
  input.q.data += input.q.offset(0, heads.front(), 0, 0);
  input.q.strides.head *= heads[1] - heads[0];
  Modifiers& modifiers = input.problem.modifiers;
  for (std::vector<double>* per_head : {&modifiers.alibi_slopes, &modifiers.sinks}) {
    std::vector<double> kept;
    for (const std::int64_t head : heads) {
      if (!per_head->empty()) kept.push_back((*per_head)[static_cast<std::size_t>(head)]);
    }
    *per_head = std::move(kept);
  }
  return input;
}

/// Compares o and lse of some rows with the reference, which need not be exact beyond f32.
LawResult rows_equal_exact(const Subject& subject, const Case& c, const Trial& trial,
                           const AttentionOutput& got) {
  const ComparedRows rows = compared_rows(c);
  Indices heads;
  for (std::int64_t i = 0; i < rows.heads; ++i)
    heads.push_back(rows.first_head + i * rows.head_step);
  const AttentionInput input = with_heads(trial.input(), heads);
  // Only one case of foreign code is at work at a time: the other threads have nothing to do.
  const ExactOptions options{.rows = rows.queries,
                             .threads = subject.can.has(Ability::foreign) ? 2 : 1};
  const ExactForward exact = trial.problem.dtype == DType::f64 ? exact_forward(input, options)
                                                               : fast_forward(input, options);
  const ForwardTolerance allowed =
      forward_tolerance(input, exact, subject.profile(trial.problem, trial.options), options);
  return compared(compare_forward({pick_heads(pick_tokens(got.out, rows.queries), heads),
                                   pick_heads(pick_tokens(got.lse, rows.queries), heads)},
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
