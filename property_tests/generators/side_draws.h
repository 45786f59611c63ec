// What a case has from streams of its seed beside the draws that made it. The order of those draws
// is part of every token that names a seed; a stream more changes none of them.
#pragma once

#include "property_tests/case.h"

namespace ringlab::verify {

/// Gives two cases in five 2 to 4 threads, and moves the borders of windows and documents in as many
/// to the edges of tiles.
void draw_beside(Case& c);

}  // namespace ringlab::verify
