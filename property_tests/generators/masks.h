// Random masks, the nearest valid mask, and simpler masks: an overload each for every kind.
#pragma once

#include <cstdint>
#include <vector>

#include "property_tests/abilities.h"
#include "property_tests/case_mask.h"
#include "property_tests/generators/draws.h"

namespace ringlab::verify {

/// A term of every kind, without its numbers.
std::vector<CaseTerm> blank_terms();

/// A mask: a quarter hides nothing, a fifth is causal, the others are one or two terms of any kind.
CaseMask random_mask(Draws& draws, const Shape& shape);
/// A window, in half of the cases causal too.
CaseMask random_window(Draws& draws, const Shape& shape);
/// Three kinds of mask at once, seldom a matrix of bits among them.
CaseMask three_masks(Draws& draws, const Shape& shape);

/// The terms that the subject takes, or a mask from the seed where none is left and the subject takes
/// no call without.
CaseMask limited_mask(const CaseMask& mask, const Shape& shape, std::uint64_t seed,
                      const Capabilities& can);

/// The mask with the limits of its windows and the borders of its documents at 16, 32, 64 or 128
/// keys, or one off: where kernels that skip whole tiles go wrong. No border is beyond `most`.
CaseMask with_borders_at_tiles(const CaseMask& mask, Draws& draws, std::int64_t most);
/// A mask of the same kinds with other numbers.
CaseMask redrawn(const CaseMask& mask, Draws& draws, const Shape& shape);

/// The nearest mask that Mask::bind() takes for this shape.
CaseMask fitted(const CaseMask& mask, const Shape& shape);

/// Masks to be tried in place of this one when a case shrinks, the boldest step first. Some are not
/// simpler.
std::vector<CaseMask> simpler_masks(const CaseMask& mask);
/// A measure of a mask. Digits count too, so that prefix:5 is simpler than prefix:7.
std::int64_t complexity(const CaseMask& mask);

/// Smaller values of one number, the smallest first: least, half way down, two down (which keeps an
/// odd number odd), one down.
std::vector<std::int64_t> smaller(std::int64_t value, std::int64_t least);

}  // namespace ringlab::verify
