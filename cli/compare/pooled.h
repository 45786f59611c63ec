// Attention that sees its own chunk key by key, and of other chunks means of keys.
#pragma once

#include <cstdint>

#include "property_tests/subject.h"

namespace ringlab::cli {

/// True if pooled_subject() takes a problem: causal or full mask, as many queries as keys.
bool can_be_pooled(const Problem& problem);

/// Ranks send each other the mean key and the mean value of every `group` tokens of their chunk;
/// each mean counts as `group` tokens. Two levels of the hierarchy of H-Transformer-1D (Zhu and
/// Soricut 2021), the upper one between ranks. Exact where the tokens of a group are alike. For
/// problems that can_be_pooled() and have no modifiers, in a contiguous layout.
verify::Subject pooled_subject(std::int64_t group);

}  // namespace ringlab::cli
