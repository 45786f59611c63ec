// Ranks, layouts and delays change no gradient.
#include <fmt/format.h>

#include "property_tests/laws/gradients/backward.h"
#include "property_tests/laws/gradients/gradients.h"

namespace ringlab::verify {
namespace {

/// Holds because ranks only split sums. Finds parts of dk and dv that are lost, doubled, or sent
/// home to the wrong rank.
LawResult gradients_know_no_ranks(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  GradientTrial alone = trial;
  alone.base.options.ranks = 1;
  return same_gradients(fmt::format("on {} ranks instead of one", c.ranks),
                        measure_gradients(subject, trial), measure_gradients(subject, alone));
}

/// Holds because ranks only split sums. Finds code that takes chunks as equal, or never empty.
LawResult gradients_know_no_partition(const Subject& subject, const Case& c) {
  const GradientTrial trial = make_gradient_trial(c);
  GradientTrial uneven = trial;
  uneven.base.options.q_layout = random_layout(c.shape.q_tokens, c.ranks, c.seed);
  uneven.base.options.kv_layout = random_layout(c.shape.kv_tokens, c.ranks, c.seed + 1);
  return same_gradients("uneven and empty chunks", measure_gradients(subject, uneven),
                        measure_gradients(subject, trial));
}

/// Holds because a schedule fixes the order of every sum. Finds buffers reused before a send has
/// ended, and sums in the order of arrival.
LawResult delays_change_no_gradient(const Subject& subject, const Case& c) {
  GradientTrial trial = make_gradient_trial(c);
  RunOptions& options = trial.base.options;
  options.transport = TransportKind::threads;
  options.rendezvous = false;
  const AttentionGradients threads = differentiate(subject, trial);
  options.transport = TransportKind::simulated;
  std::vector<LawResult> results;
  for (std::uint64_t delays = 0; delays < 4; ++delays) {
    options.delay_seed = c.delay_seed + delays;
    options.rendezvous = delays == 3;
    results.push_back(
        same_gradient_bits(fmt::format("simulated delays of seed {}", options.delay_seed),
                           differentiate(subject, trial), threads));
  }
  return all_held(results);
}

/// Holds because threads of a phase write different memory. Finds races: a missing barrier gives
/// another answer in another order.
LawResult thread_order_changes_no_gradient(const Subject& subject, const Case& c) {
  GradientTrial trial = make_gradient_trial(c);
  const AttentionGradients first = differentiate(subject, trial);
  trial.base.options.thread_order_seed = c.seed + 1;
  return same_gradient_bits("threads of a phase in another order", differentiate(subject, trial),
                            first);
}

}  // namespace

std::vector<Law> gradient_distribution_laws() {
  return {
      {.id = "P58-gradients",
       .name = "the_number_of_ranks_does_not_matter_to_gradients",
       .statement = "P ranks and one rank give the same gradients.",
       .shape_case = several_ranks,
       .needs = {Ability::backward, Ability::many_ranks},
       .check = gradients_know_no_ranks,
       .keeps_modifiers = true},
      {.id = "P60-gradients",
       .name = "the_partition_of_the_tokens_does_not_matter_to_gradients",
       .statement = "Uneven and empty chunks give the same gradients.",
       .shape_case = several_ranks,
       .needs = {Ability::backward, Ability::many_ranks},
       .check = gradients_know_no_partition,
       .keeps_modifiers = true},
      {.id = "P65-gradients",
       .name = "delays_of_messages_change_no_gradient",
       .statement = "Any delays and interleavings of the ranks give the bits of undelayed threads.",
       .exact = true,
       .shape_case = several_ranks,
       .needs = {Ability::backward, Ability::many_ranks},
       .check = delays_change_no_gradient,
       .keeps_modifiers = true},
      {.id = "P70-gradients",
       .name = "the_order_of_the_threads_of_a_block_changes_no_gradient",
       .statement = "Threads between two barriers may run in any order: the same bits.",
       .exact = true,
       .shape_case = with_tokens,
       .needs = {Ability::backward},
       .check = thread_order_changes_no_gradient,
       .keeps_modifiers = true},
  };
}

}  // namespace ringlab::verify
