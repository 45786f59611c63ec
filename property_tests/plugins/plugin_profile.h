// The arithmetic and the abilities that a plugin declares, in our words.
#pragma once

#include "property_tests/subject.h"
#include "reference/core/ringlab_plugin.h"

namespace ringlab::plugins {

/// Input error, naming `who`, for a number that is no roundoff, or not a number.
NumericsProfile plugin_profile(const ringlab_numerics& numerics, const Problem& problem,
                               const std::string& who);
/// Input error for no dtypes at all, and for limits below zero.
verify::Capabilities plugin_capabilities(const ringlab_abilities& can, const std::string& who);
/// ringlab_tensor::dtype of a dtype, which is the index of ringlab_plugin::numerics, too.
int dtype_index(DType dtype);

}  // namespace ringlab::plugins
