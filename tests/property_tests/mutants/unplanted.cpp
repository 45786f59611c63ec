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
std::vector<Mutant> balanced_ring_unplanted();
std::vector<Mutant> broadcast_unplanted();
std::vector<Mutant> overlapped_causal_ring_unplanted();
std::vector<Mutant> pairwise_ring_unplanted();
std::vector<Mutant> bidirectional_unplanted();
std::vector<Mutant> heads_unplanted();
std::vector<Mutant> compressed_wire_unplanted();
std::vector<Mutant> decode_unplanted();
std::vector<Mutant> skipping_ring_unplanted();
std::vector<Mutant> straight_backward_unplanted();
std::vector<Mutant> backward_unplanted();

namespace {

/// The names that are true of an edit; all others are wrong.
const std::map<std::string, std::vector<std::string>>& true_names() {
  static const std::map<std::string, std::vector<std::string>> names = {
      {"unplanted_scale_forgotten", {"scale.missing"}},
      {"unplanted_first_value_left_out", {"counts.first_of_the_loop_lost_in_acc"}},
      {"unplanted_lse_multiplied", {"lse.product"}},
      {"unplanted_last_channel_left_out", {"channels.last_dropped"}},
      {"unplanted_acc_of_a_part_not_rescaled", {"softmax.acc_not_rescaled"}},
      {"unplanted_infinities_subtracted_and_sum_asked", {"merge.infinity_minus_infinity"}},
      {"unplanted_partial_blocks_left_out", {"mask.partial_blocks_skipped"}},
      {"unplanted_last_send_not_awaited",
       {"ring.slot_taken_while_sent", "ring.sends_never_awaited"}},
      {"unplanted_slot_freed_before_computing", {"ring.chunks_in_one_slot"}},
      {"unplanted_owner_on_the_other_side", {"ring.owners_reversed"}},
      {"unplanted_owner_of_the_hop_before", {"ring.owner_of_the_hop_before"}},
      {"unplanted_stripes_from_behind", {"layout.stripes_from_behind"}},
      {"unplanted_late_part_before", {"layout.zigzag_late_part_before"}},
      {"unplanted_striped_place_exchanged", {"layout.striped_place_exchanged"}},
      {"unplanted_late_place_on_top", {"layout.zigzag_place_on_top"}},
      {"unplanted_late_place_below_itself", {"layout.zigzag_place_below_itself"}},
      {"unplanted_late_place_not_mirrored", {"layout.zigzag_not_mirrored"}},
      {"unplanted_positions_of_the_own_chunk", {"mask.positions_of_the_own_chunk"}},
      {"unplanted_own_causal_test", {"mask.taken_for_causal"}},
      {"unplanted_key_heads_rows_apart", {"index.k_heads_rows_apart"}},
      {"unplanted_value_rows_one_apart", {"index.v_rows_one_apart"}},
      {"unplanted_key_rows_one_apart", {"index.k_rows_one_apart"}},
      {"unplanted_break_at_a_hidden_key", {"mask.ends_a_tile_before_stale_scores"}},
      {"unplanted_own_chunk_passed_on", {"ring.own_chunk_always_passed_on"}},
      {"unplanted_scale_by_remainder", {"wire.scales_by_remainder"}},
      {"unplanted_scale_of_the_first_row", {"wire.scale_of_the_first_row"}},
      {"unplanted_group_forgotten", {"heads.dealt_as_key_heads"}},
      {"unplanted_own_rows_at_head_0", {"index.heads_on_top_for_own"}},
      {"unplanted_last_answer_only", {"ring.only_one_other_chunk"}},
      {"unplanted_queries_of_rank_0", {"mask.queries_of_rank_0"}},
      {"unplanted_scores_in_the_sum", {"softmax.scores_for_weights_in_sum"}},
      {"unplanted_maximum_not_kept", {"softmax.maximum_not_kept"}},
      {"unplanted_keys_of_the_first_tile", {"index.k_of_the_first_tile"}},
      {"unplanted_mask_of_the_first_tile", {"mask.place_in_tile"}},
      {"unplanted_queries_masked_as_the_first_tile", {"mask.queries_by_their_place_in_the_tile"}},
      {"unplanted_positions_of_the_step", {"ring.positions_of_another_chunk"}},
      {"unplanted_divided_twice", {"out.divided_twice"}},
      {"unplanted_divided_each_step", {"softmax.divided_each_step"}},
      {"unplanted_rescale_inverted", {"softmax.rescale_inverted"}},
      {"unplanted_rows_one_apart", {"index.k_rows_one_apart_in_a_tile"}},
      {"unplanted_values_from_the_end", {"index.v_reversed_in_a_tile"}},
      {"unplanted_last_of_a_tile", {"counts.last_of_each_tile_lost_in_both"}},
      {"unplanted_sums_added", {"merge.parts_added_in_sum"}},
      {"unplanted_factors_exchanged", {"merge.factors_exchanged_in_acc"}},
      {"unplanted_their_acc_not_rescaled", {"merge.new_part_not_rescaled_in_acc"}},
      {"unplanted_owner_plus_hop", {"ring.owners_reversed"}},
      {"unplanted_dq_scaled_twice", {"backward.dq_scaled_twice"}},
      {"unplanted_dk_of_keys", {"backward.dk_over_rows_of_K"}},
      {"unplanted_dv_of_ds", {"backward.dv_of_ds"}},
      {"unplanted_lse_forgotten", {"backward.lse_forgotten"}},
      {"unplanted_ds_without_p", {"backward.ds_without_p"}},
      {"unplanted_delta_of_upstream", {"backward.delta_of_dout"}},
      {"unplanted_ds_of_the_diagonal", {"backward.ds_of_the_diagonal"}},
      {"unplanted_dk_stays_away", {"backward.sum_from_elsewhere_lost_in_dk"}},
      {"unplanted_dv_scaled", {"backward.dv_scaled"}},
  };
  return names;
}

}  // namespace

std::vector<NamedEdit> unplanted_edits() {
  std::vector<NamedEdit> edits;
  for (const auto make : {attention_unplanted,
                          online_softmax_unplanted,
                          flash_blocks_unplanted,
                          merge_unplanted,
                          ring_unplanted,
                          causal_ring_unplanted,
                          slotted_ring_unplanted,
                          overlapped_ring_unplanted,
                          dealt_ring_unplanted,
                          balanced_ring_unplanted,
                          skipping_ring_unplanted,
                          straight_backward_unplanted,
                          backward_unplanted,
                          broadcast_unplanted,
                          overlapped_causal_ring_unplanted,
                          pairwise_ring_unplanted,
                          bidirectional_unplanted,
                          heads_unplanted,
                          compressed_wire_unplanted,
                          decode_unplanted}) {
    for (Mutant& mutant : make()) {
      const auto names = true_names().find(mutant.info.id);
      edits.push_back(
          {mutant, names == true_names().end() ? std::vector<std::string>{} : names->second});
    }
  }
  return edits;
}

}  // namespace ringlab::mutants
