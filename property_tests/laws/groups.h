// The groups of laws; all_laws() is their concatenation.
#pragma once

#include <vector>

#include "property_tests/law.h"

namespace ringlab::verify {

std::vector<Law> reference_laws();       ///< equals_reference, the workhorse
std::vector<Law> probe_laws();           ///< U, Y, S, R: inputs whose answer is known exactly
std::vector<Law> value_laws();           ///< effects of V on O
std::vector<Law> score_laws();           ///< effects of changed scores on O and lse
std::vector<Law> weight_laws();          ///< effects of a single score on weights and lse
std::vector<Law> key_laws();             ///< effects of keys in another form on O and lse
std::vector<Law> added_key_laws();       ///< effects of added keys
std::vector<Law> row_laws();             ///< rows, heads and batches do not see each other
std::vector<Law> structure_laws();       ///< masks, shapes, strides
std::vector<Law> distribution_laws();    ///< ranks, layouts, transports, traffic
std::vector<Law> backward_laws();        ///< gradients
std::vector<Law> extreme_laws();         ///< values at the ends of their type
std::vector<Law> infinite_value_laws();  ///< infinities of V show where they are seen
std::vector<Law> foreign_laws();         ///< for implementations of others, besides all others
std::vector<Law> many_row_laws();        ///< rows longer than a kernel takes at once
std::vector<Law> as_used_laws();         ///< sizes of models, claims two by two
std::vector<Law> far_size_laws();        ///< sizes beside powers of two
std::vector<Law> far_position_laws();    ///< positions that 16 bits do not count
std::vector<Law> every_row_laws();       ///< thousands of rows, of which none is left out

}  // namespace ringlab::verify
