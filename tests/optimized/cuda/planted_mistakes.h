// Kernels with one mistake each (plant_mistakes.py), one family of them in a program.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/optimized/cuda/cuda_kernels.h"

namespace ringlab::cuda {

struct PlantedMistake {
  std::string id;
  std::string breaks;
  BlockKernel kernel;  ///< of a pass that has the mistake, it is the only one
  Hunt hunt;
};
inline void PrintTo(const PlantedMistake& mistake, std::ostream* out) { *out << mistake.id; }
std::vector<PlantedMistake> planted_mistakes();
/// The kernels of the family without a mistake.
std::vector<PlantedMistake> kernels_as_they_are();

/// `channels`: padded, that the kernel is compiled for.
Hunt hunt_portable(int channels);
/// The query heads of a group are a multiple of `heads_together`.
Hunt hunt_forward_hopper(std::int64_t heads_together);
Hunt hunt_backward_hopper();

/// Never deterministic.
BlockKernel planted_backward_hopper(BackwardFunction<BFloat16> run);

}  // namespace ringlab::cuda
