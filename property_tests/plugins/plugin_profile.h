// The arithmetic and the abilities that a plugin declares, in our words.
#pragma once

#include "property_tests/abilities.h"
#include "reference/core/numerics.h"
#include "reference/core/ringlab_plugin.h"

namespace ringlab::plugins {

/// Abilities that a plugin declares, and the fields that say so.
struct DeclaredAbility {
  verify::Ability ability;
  std::int32_t ringlab_abilities::*field;
};
inline constexpr DeclaredAbility kDeclared[] = {
    {verify::Ability::lse, &ringlab_abilities::lse},
    {verify::Ability::backward, &ringlab_abilities::backward},
    {verify::Ability::grouped_heads, &ringlab_abilities::grouped_heads},
    {verify::Ability::rectangular, &ringlab_abilities::rectangular},
    {verify::Ability::other_v_dim, &ringlab_abilities::other_v_dim},
    {verify::Ability::no_tokens, &ringlab_abilities::no_tokens},
    {verify::Ability::empty_rows, &ringlab_abilities::empty_rows},
    {verify::Ability::any_scale, &ringlab_abilities::any_scale},
    {verify::Ability::strided_inputs, &ringlab_abilities::strided_inputs},
    {verify::Ability::deterministic, &ringlab_abilities::deterministic},
    {verify::Ability::masked_may_be_nan, &ringlab_abilities::masked_may_be_nan},
    {verify::Ability::sums_keys_in_order, &ringlab_abilities::sums_keys_in_order},
    {verify::Ability::same_bits_per_row, &ringlab_abilities::same_bits_per_row},
    {verify::Ability::divides_last, &ringlab_abilities::divides_last},
    {verify::Ability::threads, &ringlab_abilities::threads},
    {verify::Ability::many_ranks, &ringlab_abilities::ranks}};

/// Input error, naming `who`, for a number that is no roundoff, or not a number.
NumericsProfile plugin_profile(const ringlab_numerics& numerics, const Problem& problem,
                               const std::string& who);
/// Input error for no dtypes at all, and for limits below zero.
verify::Capabilities plugin_capabilities(const ringlab_abilities& can, const std::string& who);
/// ringlab_tensor::dtype of a dtype, which is the index of ringlab_plugin::numerics, too.
int dtype_index(DType dtype);

}  // namespace ringlab::plugins
