// Memory orders of the backward pass's inputs, which do not matter, and inputs that are only read.
#include <cstring>
#include <string>

#include "property_tests/laws/gradients/backward.h"
#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/structure/memory_orders.h"

namespace ringlab::verify {
namespace {

constexpr const char* kNames[] = {"q", "k", "v", "dout"};

/// Places all four inputs in other memory orders, or one of them alone: a kernel that takes that
/// one for dense shows, whatever it makes of the others.
LawResult strides_do_not_matter(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  const AttentionGradients dense = differentiate(subject, trial);
  const GuardedInputs three = guarded_inputs(trial.base, c.seed);
  const GuardedTensor dout = guarded_tensor(trial.dout, c.seed);
  const GuardedTensor* guarded[] = {&three.q, &three.k, &three.v, &dout};
  const std::vector<double> before[] = {three.q.memory, three.k.memory, three.v.memory,
                                        dout.memory};
  AttentionInput input = trial.input();
  TensorView<const double>* views[] = {&input.q, &input.k, &input.v, &*input.dout};
  std::string moved;
  for (std::size_t i = 0; i < 4; ++i) {
    if (c.seed % 5 != 4 && c.seed % 5 != i) continue;
    *views[i] = guarded[i]->view;
    moved += (moved.empty() ? "" : ", ") + std::string(kNames[i]);
  }
  const RunResult got = run_both_passes(subject, input, trial.base.options);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t bytes = before[i].size() * sizeof(double);
    if (std::memcmp(guarded[i]->memory.data(), before[i].data(), bytes) != 0) {
      return broken(std::string("the run wrote into ") + kNames[i] + " or beside it");
    }
  }
  return same_gradient_bits("the same values of " + moved + " in another memory order",
                            *got.gradients, dense, allowed_between_runs(subject, trial));
}

}  // namespace

std::vector<Law> gradient_memory_laws() {
  return {{.id = "P38-gradients",
           .name = "strides_and_offsets_of_the_inputs_do_not_matter_to_gradients",
           .statement = "q, k, v and dout, together or one alone, in any memory order with NaN in "
                        "the gaps give the same gradients, and are only read.",
           .exact = true,
           .or_within_bounds = true,
           .shape_case = with_tokens,
           .needs = {Ability::backward, Ability::strided_inputs},
           .check = strides_do_not_matter,
           .keeps_modifiers = true}};
}

}  // namespace ringlab::verify
