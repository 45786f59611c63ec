// An attention written for these tests only: one online softmax per row, with mistakes on request.
#pragma once

#include <functional>
#include <ostream>

#include "property_tests/subject.h"

namespace ringlab::verify {

enum class Mistake {
  none,
  acc_not_rescaled,  ///< the accumulator misses a factor whenever the maximum rises
  sum_not_rescaled,  ///< the row sum does
  maximum_starts_at_zero,
  maximum_starts_at_zero_guarded,  ///< and a row whose sum is 0 is taken for one that sees nothing
  scale_forgotten,
  scale_sign_flipped,
  lse_in_base_two,
  lse_without_maximum,
  lse_in_f16,
  sum_in_bf16,     ///< the row sum is rounded to bf16 after every key
  causal_one_off,  ///< key j is hidden from query i already at j = p
  last_key_dropped,
  first_key_twice,
  kv_head_modulo,         ///< h % kv_heads instead of h / group
  last_channel_ignored,   ///< of q and k
  first_v_channel_twice,  ///< channel 1 of v is read as channel 0
  odd_channels_weakened,  ///< a relative error of 1 % in odd channels of the dot product
  values_in_f16,
  queries_in_f16,
  negative_weights,     ///< 1 % is taken off every weight
  floor_under_weights,  ///< weights below e^-20 are held there, as with a finite mask value
  neighbour_leaks,      ///< 0 times a value of the next head is added
  order_by_batch,       ///< keys are summed backwards when the batch has more than one element
  row_maximum_carried,  ///< the running maximum of the previous row is kept
  odd_keys_favoured,    ///< keys at odd positions weigh 1 % more
  masked_value_read,    ///< 0 times the value of a masked key is added
  masked_key_read,      ///< 0 times the score of a masked key is added to the row sum
  // Only where cases reach far:
  scale_made_positive,
  zero_scale_taken_for_none,   ///< and replaced by the customary one
  channels_cut_at_128,         ///< of q and k
  heads_counted_to_8,          ///< the ninth query head of a group reads the query of the first
  third_mask_ignored,          ///< and all after it
  batches_counted_to_4,        ///< the fifth reads the values of the first
  keys_counted_in_16_bits,     ///< key 65536 is read at 0
  third_tile_of_keys_skipped,  ///< by rows of the third tile
  row_2047_dropped,
  row_700_of_squares_dropped,  ///< where there are as many keys
  products_saturate,           ///< products of 16 channels and more, at 65504
  // Only where sizes and types of models meet:
  mean_in_wide_groups,        ///< weights are equal for bf16, 128 channels, 8 heads, 128 keys
  last_of_thousands_dropped,  ///< the last key, of 8192 and more in a head of 64 channels or more
  window_lost_in_last_document,  ///< of documents of 64 keys and more
  document_borders_in_15_bits,   ///< borders from key 32768 on are lost
};

inline void PrintTo(Mistake mistake, std::ostream* out) {
  *out << "mistake_" << static_cast<int>(mistake);
}

Subject naive_subject(Mistake mistake = Mistake::none);

using EditResult = std::function<void(RunResult&, const AttentionInput&, const RunOptions&)>;
/// The subject whose results are edited before anybody sees them.
Subject with_results(Subject subject, const EditResult& edit);
/// The subject in f32, with every third answer a unit in the last place larger in size: what is
/// summed up in any order.
Subject with_bits_that_differ(Subject subject);
/// The subject that declares another arithmetic.
Subject with_profile(Subject subject, const std::function<void(NumericsProfile&)>& edit);

/// True when the law finds the mistake. Throws std::logic_error where the law is skipped.
bool finds(const char* law, Mistake mistake);

}  // namespace ringlab::verify
