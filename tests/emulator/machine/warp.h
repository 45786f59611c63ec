// Operations that the lanes of a warp do together.
#pragma once

#include <array>
#include <cstdint>

#include "reference/core/dtype.h"

namespace ringlab::cuda::emulator {

/// The meeting point of the 32 lanes of a warp. A lane that comes to another operation than the
/// other lanes, or ends, is a fault: the warp has diverged.
class Warp {
 public:
  using Operands = std::array<void*, 32>;

  /// Returns after all lanes came and the last of them did `act(operands)`. `what` is a literal.
  void meet(const char* what, void* operands, void (*act)(const Operands&));
  void end_lane(int lane);

 private:
  const char* what_ = nullptr;
  int arrived_ = 0;
  int ended_ = 0;
  Operands operands_ = {};
};

namespace instructions {

void sync_warp();
float shuffle_xor(float value, int mask);
std::uint32_t shuffle(std::uint32_t value, int lane);
void load_matrices(std::uint32_t (&fragments)[4], const void* row);
void load_matrices_transposed(std::uint32_t (&fragments)[4], const void* row);
void store_matrices(void* row, const std::uint32_t (&fragments)[4]);
void multiply_add(DType type, float (&d)[4], const std::uint32_t (&a)[4],
                  const std::uint32_t (&b)[2]);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
