// Memory orders of the inputs, which do not matter, and inputs that are only read.
#include <cstring>

#include "property_tests/laws/structure/memory_orders.h"
#include "property_tests/laws/structure/structure.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

/// Holds because a view says where its numbers lie. Finds kernels that take inputs for dense.
LawResult strides_do_not_matter(const Subject& subject, const Case& c) {
  const Trial prepared = make_trial(c);
  const AttentionOutput dense = subject.run(prepared.input(), prepared.options).output;
  const GuardedInputs strided = guarded_inputs(prepared, c.seed);
  const auto got = subject.run(strided.input(prepared.problem), prepared.options).output;
  return same_rows("the same values in another memory order", got, dense, {},
                   allowed_between_runs(subject, prepared));
}

bool same_bytes(const GuardedTensor& a, const std::vector<double>& b) {
  return std::memcmp(a.memory.data(), b.data(), b.size() * sizeof(double)) == 0;
}

/// Finds scaling in place, and writes past the end of a row.
LawResult inputs_are_only_read(const Subject& subject, const Case& c) {
  const Trial prepared = make_trial(c);
  const GuardedInputs inputs = guarded_inputs(prepared, c.seed);
  const GuardedInputs copy = inputs;
  subject.run(inputs.input(prepared.problem), prepared.options);
  if (!same_bytes(inputs.q, copy.q.memory)) return broken("the run wrote into q or beside it");
  if (!same_bytes(inputs.k, copy.k.memory)) return broken("the run wrote into k or beside it");
  if (!same_bytes(inputs.v, copy.v.memory)) return broken("the run wrote into v or beside it");
  return held();
}

Case any_case(Case c) { return c; }

}  // namespace

std::vector<Law> memory_laws() {
  return {
      {.id = "P38",
       .name = "strides_and_offsets_of_the_inputs_do_not_matter",
       .statement =
           "Inputs in any memory order, backwards, with NaN in the gaps, give the same bits.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = any_case,
       .needs = {Ability::strided_inputs},
       .check = strides_do_not_matter,
       .keeps_modifiers = true},
      {.id = "P39",
       .name = "inputs_and_what_lies_beside_them_are_only_read",
       .statement =
           "After a run, the memory of q, k, v and their margins holds the bytes it held before.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = any_case,
       .check = inputs_are_only_read,
       .keeps_modifiers = true},
  };
}

}  // namespace ringlab::verify
