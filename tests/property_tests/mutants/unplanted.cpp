#include "tests/property_tests/mutants/unplanted.h"

#include <map>

namespace ringlab::mutants {

// Made by generate.py of the stages and of unplanted.toml.
std::vector<Mutant> attention_unplanted();
std::vector<Mutant> online_softmax_unplanted();
std::vector<Mutant> flash_blocks_unplanted();
std::vector<Mutant> merge_unplanted();
std::vector<Mutant> ring_unplanted();
std::vector<Mutant> causal_ring_unplanted();
std::vector<Mutant> slotted_ring_unplanted();
std::vector<Mutant> overlapped_ring_unplanted();
std::vector<Mutant> dealt_ring_unplanted();
std::vector<Mutant> skipping_ring_unplanted();

namespace {

/// The names that are true of an edit; all others are wrong.
const std::map<std::string, std::vector<std::string>>& true_names() {
  static const std::map<std::string, std::vector<std::string>> names = {
      {"unplanted_scale_forgotten", {"scale.missing"}},
      {"unplanted_last_channel_left_out", {"channels.last_dropped"}},
      {"unplanted_acc_of_a_part_not_rescaled", {"softmax.acc_not_rescaled"}},
      {"unplanted_infinities_subtracted_and_sum_asked", {"merge.infinity_minus_infinity"}},
      {"unplanted_owner_of_the_hop_before", {"ring.positions_of_another_step"}},
      {"unplanted_keys_received_as_values", {"wire.keys_and_values_exchanged"}},
      {"unplanted_last_send_not_awaited",
       {"ring.slot_taken_while_sent", "ring.sends_never_awaited"}},
      {"unplanted_slot_freed_before_computing", {"ring.chunks_in_one_slot"}},
      {"unplanted_owner_on_the_other_side", {"ring.positions_of_another_step"}},
      {"unplanted_positions_of_the_step", {"ring.positions_of_another_chunk"}},
  };
  return names;
}

}  // namespace

std::vector<NamedEdit> unplanted_edits() {
  std::vector<NamedEdit> edits;
  for (const auto make :
       {attention_unplanted, online_softmax_unplanted, flash_blocks_unplanted, merge_unplanted,
        ring_unplanted, causal_ring_unplanted, slotted_ring_unplanted, overlapped_ring_unplanted,
        dealt_ring_unplanted, skipping_ring_unplanted}) {
    for (Mutant& mutant : make()) {
      const auto names = true_names().find(mutant.info.id);
      edits.push_back(
          {mutant, names == true_names().end() ? std::vector<std::string>{} : names->second});
    }
  }
  return edits;
}

}  // namespace ringlab::mutants
