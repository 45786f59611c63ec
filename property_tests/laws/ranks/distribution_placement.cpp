// The number of ranks, and the tokens that each rank holds, change no answer.
#include <algorithm>
#include <string>

#include "property_tests/laws/ranks/distribution.h"
#include "property_tests/laws/two_runs.h"
#include "property_tests/subject_list.h"

namespace ringlab::verify {
namespace {

/// Holds because the ranks only split sums over keys. Finds chunks that are lost or doubled, and
/// merges that forget to rescale.
LawResult ranks_do_not_matter(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  RunOptions alone = trial.options;
  alone.ranks = 1;
  return within_both_bounds("on " + std::to_string(c.ranks) + " ranks instead of one",
                            run_with_bounds(subject, trial.input(), trial.options),
                            run_with_bounds(subject, trial.input(), alone));
}

/// The layout in which rank r + shift holds the tokens of rank r.
Layout relabelled(const Layout& layout, int shift) {
  std::vector<Positions> parts(static_cast<std::size_t>(layout.ranks()));
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    parts[static_cast<std::size_t>((rank + shift) % layout.ranks())] = layout.positions(rank);
  }
  return Layout::from_parts(std::move(parts));
}

/// Holds because a ring visits the owners in the same order seen from each rank: its bits stay.
/// Partial answers that are merged in the order of rank numbers stay within bounds. Finds rank 0 or
/// the last rank treated apart.
LawResult relabelling_changes_nothing(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  const int shift = 1 + static_cast<int>(c.seed % static_cast<std::uint64_t>(c.ranks - 1));
  RunOptions turned = trial.options;
  turned.q_layout = relabelled(make_layout(turned, c.shape.q_tokens, {}), shift);
  turned.kv_layout = relabelled(make_layout(turned, c.shape.kv_tokens, {}), shift);
  const std::string what = "ranks renumbered by " + std::to_string(shift);
  if (!subject.can.has(Ability::ring_traffic) || !subject.can.has(Ability::deterministic)) {
    return within_both_bounds(what, run_with_bounds(subject, trial.input(), turned),
                              run_with_bounds(subject, trial.input(), trial.options));
  }
  return same_rows(what, subject.run(trial.input(), turned).output,
                   subject.run(trial.input(), trial.options).output);
}

/// Holds because ranks only split sums. Finds positions from rank · chunk length, not the layout.
LawResult partition_does_not_matter(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  RunOptions uneven = trial.options;
  uneven.q_layout = random_layout(c.shape.q_tokens, c.ranks, c.seed);
  uneven.kv_layout = random_layout(c.shape.kv_tokens, c.ranks, c.seed + 1);
  RunOptions plain = trial.options;
  plain.layout = LayoutKind::contiguous;
  const BoundedAnswer reference = run_with_bounds(subject, trial.input(), plain);
  return all_held(
      {within_both_bounds("uneven and empty chunks",
                          run_with_bounds(subject, trial.input(), uneven), reference),
       within_both_bounds("another layout", run_with_bounds(subject, trial.input(), trial.options),
                          reference)});
}

Case another_layout(Case c) {
  if (c.layout == LayoutKind::contiguous) {
    c.layout = c.seed % 2 ? LayoutKind::zigzag : LayoutKind::striped;
  }
  return several_ranks(c);
}

/// Finds errors that the oracle would share, if any: stage 01 has no ring to go wrong.
LawResult equals_the_naive_broadcast(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  return within_both_bounds(
      "compared with the stage 'broadcast'", run_with_bounds(subject, trial.input(), trial.options),
      run_with_bounds(find_subject("broadcast"), trial.input(), trial.options));
}

std::string is_not_the_broadcast(const Subject& subject) {
  return subject.name == "broadcast" ? "it is the one compared with" : "";
}

/// Holds because only the order of the visits turns round. Finds neighbours mixed up, owners
/// counted in the wrong direction.
LawResult direction_does_not_matter(const Subject& subject, const Case& c) {
  const Trial trial = make_trial(c);
  RunOptions reversed = trial.options;
  reversed.direction =
      c.direction == RingDirection::next ? RingDirection::previous : RingDirection::next;
  return within_both_bounds("in the other direction",
                            run_with_bounds(subject, trial.input(), reversed),
                            run_with_bounds(subject, trial.input(), trial.options));
}

}  // namespace

std::vector<Law> placement_laws() {
  return {
      {.id = "P58",
       .name = "the_number_of_ranks_does_not_matter",
       .statement = "P ranks and one rank give the same answer.",
       .shape_case = several_ranks,
       .needs = {Ability::many_ranks},
       .check = ranks_do_not_matter,
       .keeps_modifiers = true},
      {.id = "P59",
       .name = "renumbering_the_ranks_changes_nothing",
       .statement =
           "Shards moved along the ring give the same answer; the same bits where K/V travel it.",
       .shape_case = several_ranks,
       .needs = {Ability::many_ranks},
       .check = relabelling_changes_nothing},
      {.id = "P60",
       .name = "the_partition_of_the_tokens_does_not_matter",
       .statement = "Contiguous, zigzag, striped, uneven and empty chunks give the same answer.",
       .shape_case = another_layout,
       .needs = {Ability::many_ranks},
       .check = partition_does_not_matter,
       .keeps_modifiers = true},
      {.id = "P61",
       .name = "every_subject_agrees_with_the_naive_broadcast",
       .statement = "The answer is that of stage 01, within both bounds.",
       .shape_case = with_tokens,
       .not_applicable = is_not_the_broadcast,
       .check = equals_the_naive_broadcast},
      {.id = "P69",
       .name = "the_direction_of_the_ring_does_not_matter",
       .statement = "Sending to the next or to the previous rank gives the same answer.",
       .shape_case = several_ranks,
       .needs = {Ability::many_ranks},
       .check = direction_does_not_matter,
       .keeps_modifiers = true},
  };
}

}  // namespace ringlab::verify
