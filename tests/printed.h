// How GoogleTest names values of ours: without these it prints their bytes.
#pragma once

#include <ostream>

#include "reference/core/dtype.h"
#include "reference/core/layout.h"

namespace ringlab {

inline void PrintTo(DType dtype, std::ostream* out) { *out << dtype_info(dtype).name; }
inline void PrintTo(LayoutKind kind, std::ostream* out) { *out << layout_name(kind); }

}  // namespace ringlab
