// Speeds of attention on one device, by type, channels, mask and length.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::model {

/// One figure that somebody has measured, published or assumed.
struct KernelSpeed {
  DType dtype = DType::bf16;
  std::int64_t head_dim = 0;
  bool causal = false;       ///< else full
  std::int64_t tokens = 0;   ///< queries, and as many keys; 0: any
  double forward_flops = 0;  ///< per second, of pairs that the mask allows
  double backward_flops = 0;
  std::string source = {};
  double flops(Pass pass) const { return pass == Pass::forward ? forward_flops : backward_flops; }
};

/// A speed by length: straight over the logarithm of the length, as at the ends beyond them.
class SpeedCurve {
 public:
  void add(double tokens, double flops);
  bool empty() const { return points_.empty(); }
  double at(double tokens) const;
  double longest() const { return points_.back().first; }  ///< tokens

 private:
  std::vector<std::pair<double, double>> points_;  // by length
};

/// Curves of both passes: of blocks that are seen whole, and of those that the mask cuts.
struct BlockSpeeds {
  SpeedCurve forward_whole, forward_cut, backward_whole, backward_cut;
  bool empty() const { return forward_whole.empty(); }
  /// A cut block that is longer than any that is known is cut along its diagonal only: the rest of
  /// it is as fast as whole ones.
  double flops(Pass pass, double tokens, bool cut) const;
};

/// The speeds at so many channels: in proportion between the nearest numbers of channels that are
/// known, length by length. None where there is none of this type; f16 counts as bf16.
std::vector<KernelSpeed> speeds_at(const std::vector<KernelSpeed>& all, DType dtype,
                                   std::int64_t head_dim);

/// Curves of the speeds_at() a number of channels; none where the nearest that is known is another
/// one. A mask that is not known is as fast as the other.
BlockSpeeds block_speeds(const std::vector<KernelSpeed>& speeds, std::int64_t head_dim);

}  // namespace ringlab::model
