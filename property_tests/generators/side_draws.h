// Further draws of a case, from streams of its seed of their own. The order of its first draws is
// part of every token that names a seed; a stream more changes none of them.
#pragma once

#include "property_tests/case.h"

namespace ringlab::verify {

/// Gives two cases in five 2 to 4 threads, moves the borders of windows and documents in as many to
/// the edges of tiles, and gives half of the soft caps other sizes.
void draw_beside(Case& c);

}  // namespace ringlab::verify
