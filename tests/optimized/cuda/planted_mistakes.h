// The portable kernels with one mistake each (portable_mistakes.toml).
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "reference/core/dtype.h"
#include "tests/optimized/cuda/portable/portable_kernels.h"

namespace ringlab::cuda {

struct PlantedMistake {
  std::string id;
  std::string breaks;
  int channels;                       ///< padded, that it is compiled for
  PortableKernels<BFloat16> kernels;  ///< the pass that has the mistake; the other is null
};
inline void PrintTo(const PlantedMistake& mistake, std::ostream* out) { *out << mistake.id; }
std::vector<PlantedMistake> planted_mistakes();

}  // namespace ringlab::cuda
