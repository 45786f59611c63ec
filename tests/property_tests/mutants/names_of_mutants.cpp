// What each planted mistake is called: reviewed by hand, one by one.
#include "tests/property_tests/mutants/names_of_mutants.h"

#include "property_tests/diagnosis/asked/asked.h"

namespace ringlab::mutants {
namespace {

/// Those that no lesson asks about; the others have their names in stages/*/mistakes.toml.
std::map<std::string, std::string> names_beyond_lessons() {
  return {
      {"online_softmax_rescale_in_base_two", "softmax.rescale_in_another_base"},
      {"online_softmax_scaled_twice", "scale.twice"},
      {"online_softmax_lse_without_max", "lse.without_maximum"},
      {"online_softmax_row_sum_in_bf16", "precision.row_sum_in_bf16"},
      {"flash_blocks_kv_head_modulo", "heads.modulo"},
      {"flash_blocks_missing_barrier", "kernel.order_of_threads"},
      {"flash_blocks_masked_is_minus_10000", "mask.hidden_score_finite"},
      {"flash_blocks_query_prescaled_in_bf16", "precision.query_scaled_in_bf16"},
      {"merge_sum_not_rescaled", "softmax.sum_not_rescaled"},
      {"ring_send_buffer_reused", "ring.slot_taken_while_sent"},
      {"ring_values_of_another_hop", "ring.values_stay"},
      {"ring_wrong_owner", "ring.owners_reversed"},
      {"ring_keeps_every_chunk", "ring.memory"},
      {"window_one_too_wide", "mask.window_one_too_wide"},
      {"window_ignored", "mask.window_ignored"},
      {"document_boundary_off_by_one", "mask.document_border_early"},
      {"length_rounded_down", "mask.length_rounded_to_2p"},
      {"scale_of_one_more_channel", "scale.one_more_channel"},
      {"odd_channel_dropped", "channels.odd_one_dropped"},
      {"strides_ignored", "memory.strides_ignored"},
      {"batch_stride_forgotten", "batch.values_of_the_first"},
      {"query_scaled_in_place", "memory.inputs_written"},
      {"lse_stored_in_half", "lse.stored_in_f16"},
      {"empty_row_lse_finite", "lse.finite_for_empty_rows"},
      {"lse_in_base_two", "lse.base_two"},
      {"shards_returned_swapped", "layout.shards_of_two_ranks_swapped"},
      {"backward_last_part_lost", "backward.last_part_lost"},
      {"backward_delta_of_neighbour_row", "backward.delta_of_the_row_before"},
      {"gradients_of_two_ranks_swapped", "backward.shards_of_two_ranks_swapped"},
      {"gradients_of_keys_doubled", "backward.doubled_on_several_ranks"},
      {"gradients_of_keys_and_values_swapped", "backward.dk_and_dv_exchanged"},
      {"wire_rounds_to_half", "wire.rounded_to_f16"},
      {"wire_message_too_many", "ring.messages"},
      {"schedule_last_hop_dropped", "ring.last_chunk_dropped"},
      {"schedule_chunk_computed_twice", "ring.last_chunk_twice"},
      {"schedule_own_chunk_skipped", "ring.own_chunk_dropped_but_on_rank_0"},
      {"schedule_needed_chunk_skipped", "ring.previous_rank_skipped"},
      {"schedule_owners_shifted", "ring.positions_of_another_step"},
      {"schedule_send_first", "ring.send_before_receive"},
      {"schedule_last_gradient_lost", "backward.sum_from_elsewhere_lost"},
      {"schedule_gradient_sent_unsummed", "backward.only_last_part_sent"},
      {"engine_ships_half", "wire.rounded_to_f16"},
      {"engine_fp8_scale_lost", "wire.scale_never_read"},
      {"engine_ships_half_backward", "backward.wire_rounded_to_f16"},
      {"engine_values_of_another_hop", "ring.values_one_step_late"},
      {"engine_keys_sent_as_values", "wire.keys_and_values_exchanged"},
      {"engine_message_sent_twice", "ring.messages"},
      {"engine_gradient_counted_twice", "backward.sums_doubled_on_every_hop"},
      {"modifiers_capped_before_scaling", "modifiers.capped_before_scaling"},
      {"modifiers_slopes_of_kv_heads", "modifiers.slopes_of_kv_heads"},
      {"modifiers_slopes_of_another_head", "modifiers.slopes_of_the_next_head"},
      {"modifiers_sink_once_per_chunk", "modifiers.sink_once_per_chunk"},
      {"modifiers_sink_forgotten_in_empty_rows", "modifiers.sink_forgotten_in_empty_rows"},
      {"kernel_last_channel_skipped", "channels.odd_value_dropped"},
      {"kernel_log2e_forgotten", "softmax.log2e_forgotten"},
      {"kernel_scaled_twice", "scale.twice"},
      {"kernel_few_infinity_of_another_row", "mask.masked_value_read"},
      {"kernel_few_nothing_set_apart", "mask.masked_value_read"},
      {"kernel_infinite_value_lost", "values.infinity_misplaced"},
      {"kernel_kv_head_modulo", "heads.modulo"},
      {"kernel_state_not_loaded", "ring.only_last_chunk"},
      {"kernel_dropout_heads_alike", "modifiers.dropout_heads_alike"},
      {"kernel_dropout_factor_forgotten", "modifiers.dropout_factor_forgotten"},
      {"kernel_biased_before_capping", "modifiers.biased_before_capping"},
      {"kernel_cap_in_base_e", "modifiers.cap_in_another_base"},
      {"kernel_alibi_not_shifted", "modifiers.alibi_not_shifted"},
      {"kernel_ds_without_delta", "backward.no_delta"},
      {"kernel_lse_in_base_e", "backward.lse_in_another_base"},
      {"kernel_dk_of_p", "backward.dk_of_p"},
      {"kernel_dp_not_dropped", "backward.dp_not_dropped"},
      {"kernel_p_of_dv_not_dropped", "backward.dropped_pairs_in_dv"},
      {"kernel_dropout_in_the_row_sum", "modifiers.dropout_in_the_row_sum"},
      {"kernel_cap_not_differentiated", "backward.cap_not_differentiated"},
      {"kernel_ds_dropped_with_dp", "backward.dropped_pairs_lose_delta"},
  };
}

}  // namespace

const std::map<std::string, std::string>& names_of_mutants() {
  static const std::map<std::string, std::string> names = [] {
    std::map<std::string, std::string> all = names_beyond_lessons();
    for (const verify::AskedMistake& asked : verify::asked_mistakes()) all[asked.id] = asked.name;
    return all;
  }();
  return names;
}

}  // namespace ringlab::mutants
