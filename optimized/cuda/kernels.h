// The kernels for Hopper, as host functions. They only put work on the stream; memory stays the
// caller's. Calls: attention_call.h. Numbers: hopper_profile().
#pragma once

#include <cstdint>
#include <string>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/stream.h"

namespace ringlab::cuda {

/// Queries of a tile of BlockMask::tiles.
constexpr std::int32_t forward_hopper_tile_queries(std::int32_t head_dim, std::int32_t v_dim) {
  return head_dim > 64 || v_dim > 64 ? 128 : 192;
}

/// Empty when forward_hopper() takes such a problem on a device of this compute capability (90 for
/// 9.0), else why not. The portable kernels (portable.h) take what this one does not.
std::string why_not_hopper(const BlockShape& shape, float scale, int compute_capability);

/// The multiprocessors that forward_hopper() takes, and for how long. No other kernel fits on one
/// beside it.
struct ForwardGrid {
  /// Thread blocks stay where they are and take tile after tile, each its share: the fastest, but
  /// where another kernel has a multiprocessor, a share is done last. Else a thread block does one
  /// tile, and kernels that wait, as NCCL's copies, come in between.
  bool stays = true;
  int left_free = 0;  ///< where it stays: multiprocessors left to others; it takes one at least
};

/// The forward pass on the current device. f16 and bf16; full speed for head_dim = v_dim = 64 or
/// 128, correct for multiples of 8 up to 256. NaN and infinity reach the rows that see them and
/// no others. Nothing is launched for no queries. Bits do not depend on the order in which thread
/// blocks run. Input error for what why_not_hopper() tells; environment error naming the call when
/// CUDA fails.
template <class Element>
void forward_hopper(const ForwardCall<Element>& call, Stream stream, const ForwardGrid& grid = {});

/// True when backward_hopper() takes such heads.
constexpr bool takes_backward_hopper(std::int64_t head_dim, std::int64_t v_dim) {
  return head_dim <= 128 && v_dim <= 128;
}

/// Empty when backward_hopper() takes such a problem on a device of this compute capability, else
/// why not.
std::string why_not_backward_hopper(const BlockShape& shape, int compute_capability);

/// The backward pass on the current device. f16 and bf16; full speed for head_dim = v_dim = 64 or
/// 128, correct for multiples of 8 up to 128. Tiles of the mask, numbers, and what becomes of what
/// is not finite are those of backward_portable(), as is dQ where `deterministic`. Nothing is
/// launched for no queries or no keys. Input error for what why_not_backward_hopper() tells;
/// environment error naming the call when CUDA fails.
template <class Element>
void backward_hopper(const BackwardCall<Element>& call, Stream stream);

}  // namespace ringlab::cuda
