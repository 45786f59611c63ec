// Memory that earlier calls have left does not show in answers.
#include <algorithm>
#include <exception>
#include <limits>
#include <vector>

#include "property_tests/laws/structure/structure.h"
#include "property_tests/laws/two_runs.h"
#include "reference/core/machine/machine_failure.h"

namespace ringlab::verify {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Takes blocks of all sizes that calls of this size ask for, fills them with NaN and gives them
/// back. A double holds two NaN of float: whatever type is read, there is none but NaN.
void poison_free_memory() {
  std::vector<std::vector<float>> blocks;
  for (std::size_t numbers = 8; numbers <= (std::size_t{1} << 14); numbers *= 2) {
    for (int copies = 0; copies < 4; ++copies) {
      blocks.emplace_back(numbers, std::numeric_limits<float>::quiet_NaN());
    }
  }
}

/// Holds for every function of its arguments. Finds scratch memory that is read before it is
/// written, which is mostly zeros in a fresh process and so passes every other law.
LawResult memory_of_earlier_calls(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const AttentionOutput first = attend(subject, trial);
  Trial poisoned = trial;
  for (Tensor<double>* x : {&poisoned.data.q, &poisoned.data.k, &poisoned.data.v}) {
    std::ranges::fill(x->values(), kNan);
  }
  try {
    attend(subject, poisoned);
  } catch (const std::exception& refusal) {
    // A subject may refuse NaN, which it has read by then.
    if (machine_failure(refusal)) throw;
  }
  poison_free_memory();
  return same_rows("the same call after one with NaN everywhere", attend(subject, trial), first, {},
                   allowed_between_runs(subject, trial));
}

}  // namespace

std::vector<Law> reused_memory_laws() {
  return {{.id = "P71",
           .name = "what_an_earlier_call_left_in_memory_does_not_show",
           .statement = "After a call on NaN alone, and with free memory full of NaN, the same "
                        "call gives the same bits as before.",
           .exact = true,
           .or_within_bounds = true,
           .check = memory_of_earlier_calls,
           .keeps_modifiers = true}};
}

}  // namespace ringlab::verify
