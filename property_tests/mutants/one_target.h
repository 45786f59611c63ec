// Included before Highway in a file of planted kernels: compiles it for one kind of vectors only,
// whatever the processor that runs the rest of the program has.
#pragma once

#include <hwy/detect_targets.h>

#if HWY_ARCH_X86
#undef HWY_TARGET
#define HWY_TARGET HWY_AVX2
#endif
