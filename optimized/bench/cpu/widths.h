// The kernels at every kind of head_dim: narrow, odd, padded to whole vectors, wide.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "optimized/bench/measure/timing.h"

namespace ringlab::bench {

/// One kernel with inputs of one type.
struct WidthKernel {
  std::string name;            ///< "f32 forward"
  std::string peak;            ///< what its shares are of: "f32 multiply-add" or "bf16 dot product"
  std::vector<Spread> shares;  ///< for each of Widths::head_dims
};

struct Widths {
  std::vector<std::int64_t> head_dims;
  std::vector<WidthKernel> kernels;
};

struct WidthOptions {
  std::int64_t tokens = 2048;  ///< full mask, one head
  int rounds = 7;
  std::function<void(double share)> progress = {};
};

/// Shares of the peak on one thread, forward and backward, f32 and bf16; bf16 of the peak of dot
/// products where the kernels use them, else of multiply-adds in f32. Operations are those of the
/// true head_dim: what padding costs shows.
Widths measure_widths(const WidthOptions& options);

}  // namespace ringlab::bench
