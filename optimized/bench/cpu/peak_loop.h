// The most operations of a kind that this processor does: what kernels are measured against.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "optimized/bench/measure/timing.h"

namespace ringlab::bench {

/// Fused multiply-adds in f32 or f64, or products of bf16 summed in f32: of pairs or of matrices.
enum class PeakOperation { f32_fma, f64_fma, bf16_dot, bf16_matrix };
/// The operation that the kernels for bf16 use on this processor.
PeakOperation operation_for_bf16();
/// "f32 multiply-add", "bf16 matrix product", …
std::string name_of(PeakOperation operation);

/// A loop of one PeakOperation on registers only, on the widest vectors that the kernels can use
/// here. Hand-written assembly: compilers reorder or spill such loops.
class PeakLoop {
 public:
  /// Why there is no loop for this operation on this processor; empty when there is one.
  static std::string missing(PeakOperation operation);

  /// Environment error where missing() gives a reason.
  explicit PeakLoop(PeakOperation operation);
  /// Runs for `flops` floating-point operations at least, two for each multiply-add; returns their
  /// number.
  double run(double flops) const;
  /// Operations per second of processor time, the best of a few runs of about 10 ms.
  double flops_per_s() const;

 private:
  PeakOperation operation_;
  bool wide_;  ///< 512 bits, else 256
};

/// Work with a known number of operations.
struct Counted {
  std::string id;
  double flops;
  std::function<void()> work;
};

struct PeakShare {
  Spread share, gflops_per_s, peak_gflops_per_s;
};

/// The share of the peak of each work, timed in turn with the peak. `all` has one at least.
std::vector<PeakShare> shares_of_peak(PeakOperation operation, const std::vector<Counted>& all,
                                      const TimingOptions& timing);

}  // namespace ringlab::bench
