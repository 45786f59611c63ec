// The Hopper backward kernel with one mistake each (hopper_backward_mistakes.toml).
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "optimized/cuda/attention_call.h"
#include "reference/core/dtype.h"

namespace ringlab::cuda {

struct HopperBackwardMistake {
  std::string id;
  std::string breaks;
  void (*kernel)(const BackwardCall<BFloat16>& call, std::uint64_t seed);
};
inline void PrintTo(const HopperBackwardMistake& mistake, std::ostream* out) { *out << mistake.id; }
std::vector<HopperBackwardMistake> hopper_backward_mistakes();

}  // namespace ringlab::cuda
