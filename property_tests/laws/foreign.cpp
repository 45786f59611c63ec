// Laws for the implementations of others: an answer depends on the call and on nothing else, not on
// earlier calls, on addresses, or on the time.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "property_tests/laws/groups.h"
#include "property_tests/laws/shapes.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

std::string needs_to_be_foreign(const Subject& subject) {
  return subject.can.foreign ? "" : "its source is here";
}

/// Other numbers in the same shapes.
AttentionTensors other_numbers(Case c) {
  c.seed += 1;
  if (c.family == Family::constant_v) c.family = Family::normal;
  return make_tensors(c);
}

/// Lets the clock go on to another second, in one case of twelve.
void sometimes_wait(const Case& c) {
  if (c.seed % 12 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1050));
}

/// Holds for every function of its arguments. Finds caches keyed by shape, random seeds taken from
/// the clock, and state left over from the call before.
LawResult the_same_call_again(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  Trial between = trial;
  between.data = other_numbers(c);
  const AttentionOutput first = attend(subject, trial);
  attend(subject, between);
  sometimes_wait(c);
  const AttentionOutput again = attend(subject, trial);
  if (subject.can.deterministic) return same_rows("the same call after another one", again, first);
  const ForwardTolerance allowed = judge(subject, trial).allowed;
  return within_both_bounds("the same call after another one", {again, allowed}, {first, allowed});
}

void overwrite(Tensor<double>& numbers, const Tensor<double>& others, std::int64_t first) {
  const auto begin = static_cast<std::ptrdiff_t>(first);
  std::copy(others.values().begin() + begin, others.values().end(),
            numbers.values().begin() + begin);
}

/// Overwrites all numbers, or only the very last of one tensor: an input recognised by its first
/// bytes, or by its size, shows then.
/// Holds as above; finds results cached by the address of their inputs.
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

}  // namespace

std::vector<Law> foreign_laws() {
  return {{.id = "same_call",
           .name = "the_same_call_gives_the_same_answer_later",
           .statement = "Other calls and a second in between change nothing: the same bits, or, "
                        "where they are not promised, an answer within both bounds.",
           .exact = false,
           .shape_case = with_tokens,
           .not_applicable = needs_to_be_foreign,
           .check = the_same_call_again},
          {.id = "same_addresses",
           .name = "other_numbers_at_the_same_addresses_give_their_own_answer",
           .statement = "q, k and v are overwritten where they lie, wholly or their last number "
                        "alone: the answer is that of the new numbers.",
           .exact = false,
           .shape_case = with_tokens,
           .not_applicable = needs_to_be_foreign,
           .check = other_numbers_in_the_same_place}};
}

}  // namespace ringlab::verify
