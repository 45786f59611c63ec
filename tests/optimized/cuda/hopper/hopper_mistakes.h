// The Hopper kernel with one mistake each (hopper_mistakes.toml).
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "reference/core/dtype.h"
#include "tests/optimized/cuda/hopper/hopper_kernels.h"

namespace ringlab::cuda {

struct HopperMistake {
  std::string id;
  std::string breaks;
  EmulatedHopper<BFloat16> kernel;
  std::int64_t heads_together = 1;  ///< the query heads of a group must be a multiple of it
};
inline void PrintTo(const HopperMistake& mistake, std::ostream* out) { *out << mistake.id; }
std::vector<HopperMistake> hopper_mistakes();

}  // namespace ringlab::cuda
