/* What the kernel of this folder is compiled as: -DVARIANT=variant_NAME,
 * and -DUNDECLARED=1. variants.toml says what each one is. */
#ifndef RINGLAB_TESTS_PLUGIN_MISTAKES_VARIANTS_H_
#define RINGLAB_TESTS_PLUGIN_MISTAKES_VARIANTS_H_

enum variant {
  /* Legal: */
  variant_plain,
  variant_exp2,
  variant_compensated,
  variant_split_keys,
  variant_reversed,
  variant_two_passes,
  variant_bf16_weights,
  variant_lazy_rescaling,
  variant_double_sums,
  variant_odd_tiles,
  variant_tree,
  variant_tf32_declared,
  variant_dout_scaled,
  variant_padded_heads,
  variant_partial_bf16_declared,
  variant_cubic_exp_declared,
  variant_nan_hidden,
  variant_bf16_queries,
  variant_scaled_queries,
  variant_divided_early,
  variant_f16_weights,
  variant_bf16_lse,
  variant_bf16_dk,
  variant_flushed,
  /* Wrong: */
  variant_tail_of_keys,
  variant_tail_of_channels,
  variant_tail_of_queries,
  variant_narrow_values,
  variant_group_of_eight,
  variant_batch_of_four,
  variant_no_keys,
  variant_k_dense_backward,
  variant_dout_dense,
  variant_offsets_of_32_bits,
  variant_v_strides_of_k,
  variant_cache_by_pointer,
  variant_cache_by_sample,
  variant_cache_by_shape,
  variant_row_in_thousands,
  variant_last_row_of_256,
  variant_one_visible_key,
  variant_window_border_64,
  variant_documents_border_16,
  variant_prefix_over_causal,
  variant_second_of_three,
  variant_bits_by_eight,
  variant_causal_tile_skip,
  variant_alibi_powers,
  variant_sinks_per_tile,
  variant_softcap_after_alibi,
  variant_dropout_16_bits,
  variant_softcap_gradient,
  variant_lse_base_2,
  variant_lse_of_empty_rows,
  variant_cubic_exp,
  variant_tf32,
  variant_partial_bf16,
  variant_first_maximum,
  variant_scale_after_maximum,
  variant_zero_scale,
  variant_delta_not_in_dk,
  variant_dk_of_first_head,
  variant_dq_scaled_twice,
  variant_dk_not_cleared,
  variant_dv_without_factor,
  variant_shared_scores,
  variant_one_call_in_fifty,
  variant_threads_leave_a_row,
  variant_refuses_wide,
  variant_masked_nan
};

/* Whether what a legal variant rounds is kept from the verifier, and so wrong. */
#ifndef UNDECLARED
#define UNDECLARED 0
#endif

#define IS(name) (VARIANT == variant_##name)

#endif /* RINGLAB_TESTS_PLUGIN_MISTAKES_VARIANTS_H_ */
