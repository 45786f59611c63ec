// Schedules change no bit that they should not, and errors do not grow with the ranks.
//
// P66 (a watermark in every payload) is no law about answers: messages of the engine have a header
// that says what they are and is checked where they arrive, so a mix-up is an error, not a result.
#include <fmt/format.h>

#include <algorithm>

#include "property_tests/laws/gradients/gradients.h"
#include "property_tests/laws/ranks/distribution.h"

namespace ringlab::verify {
namespace {

std::string needs_slots(const Subject& subject) {
  return subject.can.has(Ability::schedules) || subject.can.has(Ability::prefetches)
             ? ""
             : "it has no slots to choose from";
}

/// Holds because slots decide when chunks travel and not in which order they are computed. Finds
/// slots that are filled again while they are still read.
LawResult slots_change_nothing(const Subject& subject, const Case& c) {
  GradientTrial trial = make_gradient_trial(c);
  const auto run = [&](int slots) {
    trial.base.options.slots = slots;
    return run_checked(subject,
                       subject.can.has(Ability::backward) ? trial.input() : trial.base.input(),
                       trial.base.options);
  };
  const RunResult one = run(1);
  std::vector<LawResult> results;
  for (const int slots : {2, 3}) {
    const RunResult more = run(slots);
    const std::string what = fmt::format("{} slots instead of one", slots);
    results.push_back(same_rows(what, more.output, one.output));
    if (one.gradients && more.gradients) {
      results.push_back(same_gradient_bits(what, *more.gradients, *one.gradients,
                                           allowed_between_runs(subject, trial)));
    }
  }
  return all_held(results);
}

/// The profile of one rank, with as many rescales and merges as the run on many ranks declares.
NumericsProfile one_rank_arithmetic(const Subject& subject, const Trial& trial) {
  RunOptions alone = trial.options;
  alone.ranks = 1;
  NumericsProfile profile = subject.profile(trial.problem, alone);
  const NumericsProfile many = subject.profile(trial.problem, trial.options);
  profile.max_rescales = std::max(profile.max_rescales, many.max_rescales);
  profile.lse_merges = std::max(profile.lse_merges, many.lse_merges);
  if (profile.accumulation_chain > 0) {
    profile.accumulation_chain = std::max(profile.accumulation_chain, many.accumulation_chain);
  }
  return profile;
}

/// Holds because every key may raise the maximum once, and every chunk may be merged once: no more
/// may be declared, whatever the number of ranks. Finds running outputs that are rounded to the
/// problem's type at every hop.
LawResult errors_do_not_grow_with_the_ranks(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const NumericsProfile profile = one_rank_arithmetic(subject, trial);
  const std::int64_t most = c.shape.kv_tokens + c.ranks;
  if (profile.max_rescales > most || profile.lse_merges > most) {
    return broken(fmt::format("it declares {} rescales and {} merges; {} are possible",
                              profile.max_rescales, profile.lse_merges, most));
  }
  const ExactForward exact = exact_forward(trial.input());
  const ForwardTolerance allowed = forward_tolerance(trial.input(), exact, profile);
  if (zeros_would_pass({exact, allowed})) return unbounded("an output of zeros would pass");
  const AttentionOutput got = attend(subject, trial);
  return both(matches("o", got.out, exact.out, allowed.out),
              matches("lse", got.lse, exact.lse, allowed.lse));
}

Case long_ring(Case c) {
  c = with_tokens(c);
  c.ranks = 8;
  c.shape.batch = 1;
  const std::int64_t tokens = std::max<std::int64_t>(c.shape.kv_tokens, 8 * c.ranks);
  c.shape.q_tokens = c.shape.kv_tokens = tokens;
  if (c.mask != "causal") c.mask = "full";
  return fitted(c);
}

}  // namespace

std::vector<Law> schedule_laws() {
  return {
      {.id = "P64",
       .name = "the_number_of_slots_changes_no_bit",
       .statement = "One, two or three chunks held at once: the same bits, forward and backward.",
       .exact = true,
       .shape_case = several_ranks,
       .not_applicable = needs_slots,
       .check = slots_change_nothing,
       .keeps_modifiers = true},
      {.id = "P76",
       .name = "errors_do_not_grow_with_the_ranks",
       .statement = "A long ring of 8 ranks keeps the bound of one rank's arithmetic.",
       .shape_case = long_ring,
       .needs = {Ability::many_ranks},
       .check = errors_do_not_grow_with_the_ranks},
  };
}

}  // namespace ringlab::verify
