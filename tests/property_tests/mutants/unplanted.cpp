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
std::vector<Mutant> hierarchical_unplanted();
std::vector<Mutant> heads_unplanted();
std::vector<Mutant> documents_and_windows_unplanted();
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
      {"unplanted_weight_taken_for_1", {"merge.new_part_not_rescaled_in_sum"}},
      {"unplanted_maximum_is_the_last_score", {"softmax.maximum_of_each_key"}},
      {"unplanted_key_head_by_remainder", {"heads.modulo"}},
      {"unplanted_value_rows_of_the_width_of_keys", {"index.v_rows_as_of_the_other"}},
      {"unplanted_adds_and_rescales", {"softmax.rescaled_after_adding_in_acc"}},
      {"unplanted_ends_at_the_first_hidden_key", {"mask.ends_the_loop"}},
      {"unplanted_partial_tiles_left_out", {"mask.partial_tiles_skipped"}},
      {"unplanted_sum_rescaled_at_each_key", {"softmax.rescaled_at_each_key_in_sum"}},
      {"unplanted_heads_inside_queries", {"mask.heads_inside_queries"}},
      {"unplanted_factor_on_the_new_weight", {"softmax.factor_on_the_new_part_in_sum"}},
      {"unplanted_sums_wait_a_hop", {"backward.sums_a_hop_late"}},
      {"unplanted_one_way_for_both", {"ring.one_side_twice"}},
      {"unplanted_keys_where_values_belong", {"index.keys_for_values"}},
      {"unplanted_queries_by_row", {"mask.local_positions_of_queries"}},
      {"unplanted_passed_on_before_adding", {"backward.one_hop_short"}},
      {"unplanted_sums_never_move", {"backward.sums_never_travel"}},
      {"unplanted_sums_begun_anew", {"backward.sums_begun_anew"}},
      {"unplanted_dq_of_the_last_chunk", {"backward.dq_begun_anew"}},
      {"unplanted_dk_of_values_stored", {"backward.dk_scaled_twice"}},
      {"unplanted_stored_before_the_last_hop", {"backward.one_hop_short_in_dk"}},
      {"unplanted_way_of_owners_forgotten", {"ring.owner_along_the_ring"}},
      {"unplanted_sides_of_messages_exchanged", {"ring.sides_exchanged"}},
      {"unplanted_one_way_computed", {"ring.one_side_dropped"}},
      {"unplanted_chunk_of_the_hop_before", {"ring.chunk_one_step_late"}},
      {"unplanted_exchanges_one_short", {"ring.last_exchange_dropped"}},
      {"unplanted_nodes_rounded_down", {"ring.nodes_rounded_down"}},
      {"unplanted_way_forgotten", {"ring.direction_forgotten_in_nodes"}},
      {"unplanted_node_ahead_for_behind", {"ring.node_ahead"}},
      {"unplanted_first_hop_not_computed", {"ring.first_hop_in_nodes_dropped"}},
      {"unplanted_own_node_only", {"ring.only_the_own_node"}},
      {"unplanted_owner_by_width_of_the_block", {"ring.block_forgotten"}},
      {"unplanted_rest_of_heads_left_out", {"heads.rest_has_no_rank"}},
      {"unplanted_own_part_forgotten", {"heads.own_part_lost"}},
      {"unplanted_lse_of_the_first_heads", {"heads.lse_comes_home_reversed"}},
      {"unplanted_end_without_group", {"heads.one_of_each_group"}},
      {"unplanted_lse_stays", {"out.never_written"}},
      {"unplanted_needs_of_the_last_query", {"ring.needed_by_last_first"}},
      {"unplanted_needs_of_earlier_ranks", {"ring.later_ranks_skipped"}},
      {"unplanted_loop_ends_where_nothing_comes", {"ring.ends_where_nothing_comes"}},
      {"unplanted_own_chunk_at_each_hop", {"ring.chunk_never_moves"}},
      {"unplanted_needs_full_blocks", {"mask.partial_blocks_skipped"}},
      {"unplanted_scales_multiplied_twice", {"wire.scale_multiplied_twice"}},
      {"unplanted_scale_not_undone", {"wire.scale_never_read"}},
      {"unplanted_scale_of_the_first_number", {"wire.scale_of_the_first_number"}},
      {"unplanted_scale_of_positive_numbers", {"wire.scale_of_numbers_above_zero"}},
      {"unplanted_value_scales_after_channels", {"wire.scale_of_the_row_before_for_v"}},
      {"unplanted_answers_added_in_sum_alone", {"merge.parts_added_in_sum"}},
      {"unplanted_own_answer_twice", {"ring.own_chunk_twice"}},
      {"unplanted_finished_before_merging", {"ring.only_own_chunk"}},
      {"unplanted_queries_from_the_other_side", {"ring.queries_from_the_other_side"}},
      {"unplanted_two_scale_and_divided_twice", {"scale.missing + out.divided_twice"}},
      {"unplanted_two_first_value_and_causal",
       {"mask.taken_for_causal + counts.first_of_the_loop_lost_in_acc"}},
      {"unplanted_two_heads_and_rescale", {"softmax.rescale_inverted"}},
      {"unplanted_two_acc_and_sum",
       {"softmax.sum_not_rescaled + merge.new_part_not_rescaled_in_acc"}},
      {"unplanted_two_positions_and_weight",
       {"mask.local_positions_of_queries + merge.new_part_not_rescaled_in_sum"}},
      {"unplanted_two_heads_and_scale", {"scale.missing + heads.modulo"}},
      {"unplanted_two_dq_scaled_twice_and_dk_of_keys",
       {"backward.dk_over_rows_of_K + backward.dq_scaled_twice"}},
      {"unplanted_two_delta_and_dv", {"backward.dv_of_ds + backward.delta_of_dout"}},
      {"unplanted_two_dk_unscaled_and_one_hop_short",
       {"backward.dk_without_scale + backward.one_hop_short"}},
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
                          hierarchical_unplanted,
                          heads_unplanted,
                          documents_and_windows_unplanted,
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
