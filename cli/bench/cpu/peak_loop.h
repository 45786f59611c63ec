// The most operations of a kind that this processor does: what kernels are measured against.
#pragma once

#include <cstdint>
#include <string>

namespace ringlab::bench {

/// Fused multiply-adds in f32 or f64, or dot products of pairs of bf16 summed in f32.
enum class Operation { f32_fma, f64_fma, bf16_dot };

/// Such operations on registers only, on the widest vectors that the kernels can use here.
/// Hand-written assembly: compilers reorder or spill such loops.
class PeakLoop {
 public:
  /// Why there is no loop for this operation on this processor; empty when there is one.
  static std::string missing(Operation operation);

  /// Environment error where it is missing.
  explicit PeakLoop(Operation operation);
  /// Runs for `flops` floating-point operations at least, two for each multiply-add; returns how
  /// many it were.
  double run(double flops) const;
  /// Operations per second of processor time, the best of a few runs of about 10 ms.
  double flops_per_s() const;

 private:
  Operation operation_;
  bool wide_;  ///< 512 bits, else 256
};

}  // namespace ringlab::bench
