// The most fused multiply-adds this processor does: what kernels are measured against.
#pragma once

#include <cstdint>

namespace ringlab::cli {

/// Multiply-adds on registers only, for a given number of operations, on the widest vectors that
/// the kernels can use here. Hand-written assembly: compilers reorder or spill such loops.
class FmaPeak {
 public:
  /// Environment error where there is no loop for this processor: it needs AVX2 and FMA.
  FmaPeak();
  /// Runs for `flops` floating-point operations in f32 at least, two for each multiply-add; returns
  /// how many it were.
  double run(double flops) const;

 private:
  bool wide_;  ///< 512 bits, else 256
};

}  // namespace ringlab::cli
