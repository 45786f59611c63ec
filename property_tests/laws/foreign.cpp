// Laws for the implementations of others: an answer depends on the call and on nothing else, not on
// earlier calls, on addresses, or on the time.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/generators/masks.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

/// Tensors of the same shapes with other numbers.
AttentionTensors other_numbers(Case c) {
  c.seed += 1;
  if (c.family == Family::constant_v) c.family = Family::normal;
  return make_tensors(c);
}

void keep_first_head(Modifiers& changed, const Modifiers& before) {
  for (auto numbers : {&Modifiers::alibi_slopes, &Modifiers::sinks}) {
    if (!(changed.*numbers).empty()) (changed.*numbers).front() = (before.*numbers).front();
  }
}

/// A trial of the same shapes with other numbers. Half of them have other limits of the masks and
/// other modifiers; half of these keep the first head's modifiers, a quarter have another scale.
Trial another_call(const Subject& subject, const Case& c) {
  constexpr std::int64_t kLimitStream = -6;
  Trial other = make_trial(c);
  other.data = other_numbers(c);
  Draws draws(c.seed, {kLimitStream});
  if (draws.chance(50)) return other;
  Case changed = c;
  changed.seed += 1;
  changed.mask = redrawn(c.mask, draws, c.shape);
  if (draws.chance(25)) changed.scale = ScaleKind::unit;
  Problem problem = make_problem(changed);
  if (draws.chance(50)) keep_first_head(problem.modifiers, other.problem.modifiers);
  if (obstacle(subject.can, problem).empty()) other.problem = std::move(problem);
  return other;
}

/// Lets the clock go on to another second, in one case of twelve.
void sometimes_wait(const Case& c) {
  if (c.seed % 12 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1050));
}

/// Holds for every function of its arguments. Finds caches keyed by shape, of answers or of
/// converted masks, random seeds taken from the clock, and state left over from the call before.
LawResult the_same_call_again(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const AttentionOutput first = attend(subject, trial);
  LawResult between = equals_exact(measure(subject, another_call(subject, c)));
  if (between.outcome == Outcome::broken) return between;
  sometimes_wait(c);
  const AttentionOutput again = attend(subject, trial);
  if (subject.can.has(Ability::deterministic))
    return same_rows("the same call after another one", again, first);
  const ForwardTolerance allowed = judge(subject, trial).allowed;
  return within_both_bounds("the same call after another one", {again, allowed}, {first, allowed});
}

void overwrite(Tensor<double>& numbers, const Tensor<double>& others, std::int64_t first) {
  const auto begin = static_cast<std::ptrdiff_t>(first);
  std::copy(others.values().begin() + begin, others.values().end(),
            numbers.values().begin() + begin);
}

/// Overwrites all numbers, or only the last of one tensor, so that a subject shows which recognises
/// its inputs by their first bytes, or by their size.
/// Holds for every function of its arguments. Finds results cached by the address of their inputs.
LawResult other_numbers_in_the_same_place(const Subject& subject, const Case& c) {
  Trial trial = make_trial(c);
  attend(subject, trial);
  const AttentionTensors others = other_numbers(c);
  Tensor<double>* tensors[] = {&trial.data.q, &trial.data.k, &trial.data.v};
  const Tensor<double>* sources[] = {&others.q, &others.k, &others.v};
  for (std::size_t i = 0; i < 3; ++i) {
    if (c.seed % 4 != 0 && c.seed % 4 != i + 1) continue;
    const bool everything = c.seed / 4 % 2 == 0;
    overwrite(*tensors[i], *sources[i],
              everything ? 0 : std::max<std::int64_t>(0, tensors[i]->size() - 1));
  }
  return equals_exact(measure(subject, trial));
}

/// Overwrites some rows in the middle of a tensor, or a single number there; the numbers before and
/// behind stay.
void overwrite_middle(Tensor<double>& numbers, const Tensor<double>& others, std::uint64_t seed) {
  const std::int64_t rows =
      numbers.extents().batch * numbers.extents().heads * numbers.extents().tokens;
  const std::int64_t channels = numbers.extents().channels;
  Draws draws(seed, {rows});
  std::int64_t first = draws.between(rows / 4, rows / 2) * channels;
  std::int64_t count = draws.between(1, std::max<std::int64_t>(1, rows / 4)) * channels;
  if (draws.chance(30)) {
    first += draws.below(channels);
    count = 1;
  }
  const auto begin = static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  std::copy(others.values().begin() + begin, others.values().begin() + end,
            numbers.values().begin() + begin);
}

/// Compares o and lse with the exact ones, and gradients where the subject has any.
LawResult equals_exact_in_both_passes(const Subject& subject, const GradientTrial& trial) {
  LawResult forward = equals_exact(measure(subject, trial.base));
  if (forward.outcome == Outcome::broken || !subject.can.has(Ability::backward)) return forward;
  return both(equal_exact(measure_gradients(subject, trial)), forward);
}

void ask_both_passes(const Subject& subject, const GradientTrial& trial) {
  attend(subject, trial.base);
  if (subject.can.has(Ability::backward)) differentiate(subject, trial);
}

/// Calls the subject with some numbers, frees them, and calls it with others that are allocated
/// then, mostly where the first ones were.
LawResult other_numbers_after_freeing(const Subject& subject, const Case& c) {
  ask_both_passes(subject, make_gradient_trial(c));
  GradientTrial trial = make_gradient_trial(c);
  const AttentionTensors others = other_numbers(c);
  trial.base.data.q.values() = others.q.values();
  trial.base.data.k.values() = others.k.values();
  trial.base.data.v.values() = others.v.values();
  return equals_exact_in_both_passes(subject, trial);
}

/// Holds for every function of its arguments. Finds results cached by address with a check of the
/// ends, of a sample, or of the forward pass alone.
LawResult other_numbers_in_the_middle(const Subject& subject, const Case& c) {
  if (c.seed % 5 == 4) return other_numbers_after_freeing(subject, c);
  GradientTrial trial = make_gradient_trial(c);
  ask_both_passes(subject, trial);
  Case other = c;
  other.seed += 1;
  if (c.family == Family::constant_v) other.family = Family::normal;
  const AttentionTensors others = make_tensors(other);
  const Tensor<double> other_dout = make_dout(other);
  Tensor<double>* tensors[] = {&trial.base.data.q, &trial.base.data.k, &trial.base.data.v,
                               &trial.dout};
  const Tensor<double>* sources[] = {&others.q, &others.k, &others.v, &other_dout};
  const std::size_t which = c.seed % (subject.can.has(Ability::backward) ? 4 : 3);
  overwrite_middle(*tensors[which], *sources[which], c.seed);
  return equals_exact_in_both_passes(subject, trial);
}

/// The case with eight rows at least, so that there is a middle between two ends.
Case several_rows(Case c) {
  c.shape.q_tokens = std::max<std::int64_t>(8, c.shape.q_tokens);
  c.shape.kv_tokens = std::max<std::int64_t>(8, c.shape.kv_tokens);
  return with_tokens(c);
}

}  // namespace

std::vector<Law> foreign_laws() {
  return {{.id = "same_call",
           .name = "the_same_call_gives_the_same_answer_later",
           .statement = "Other calls and a second in between change nothing: the same bits, or, "
                        "where they are not promised, an answer within both bounds. A call in "
                        "between has an answer of its own.",
           .shape_case = with_tokens,
           .needs = {Ability::foreign},
           .check = the_same_call_again,
           .keeps_modifiers = true},
          {.id = "same_addresses",
           .name = "other_numbers_at_the_same_addresses_give_their_own_answer",
           .statement = "q, k and v are overwritten where they lie, wholly or their last number "
                        "alone: the answer is that of the new numbers.",
           .shape_case = with_tokens,
           .needs = {Ability::foreign},
           .check = other_numbers_in_the_same_place,
           .keeps_modifiers = true},
          {.id = "same_addresses_middle",
           .name = "other_numbers_in_the_middle_of_a_tensor_give_their_own_answer",
           .statement = "Some rows or one number in the middle of q, k, v or dout are overwritten "
                        "where they lie, or all are freed and allocated again: o, lse and "
                        "gradients are those of the new numbers.",
           .shape_case = several_rows,
           .needs = {Ability::foreign},
           .check = other_numbers_in_the_middle,
           .keeps_modifiers = true}};
}

}  // namespace ringlab::verify
