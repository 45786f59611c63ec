// The kernels for Hopper, as host functions. They only put work on the stream; memory stays the
// caller's. Calls: attention_call.h. Accuracy: hopper_profile().
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
/// 9.0), else why not. The portable kernels (portable.h) take the other problems.
std::string why_not_hopper(const BlockShape& shape, float scale, int compute_capability);

/// The multiprocessors that forward_hopper() takes, and for how long. No other kernel fits beside
/// it on a multiprocessor.
struct ForwardGrid {
  /// Thread blocks stay and take tile after tile, each its share: the fastest way, but where
  /// another kernel holds a multiprocessor, one share is done last. Else a thread block does one
  /// tile, and kernels that wait, such as NCCL's copies, run in between.
  bool stays = true;
  int left_free = 0;  ///< where it stays: multiprocessors left to others; it takes one at least
};

/// The forward pass on the current device. f16 and bf16; full speed for head_dim = v_dim = 64 or
/// 128, correct for multiples of 8 up to 256. NaN and infinity reach the rows that see them and
/// no others. Nothing is launched for no queries. Bits do not depend on the order in which thread
/// blocks run. Input error unless why_not_hopper() is empty; environment error naming the call when
/// CUDA fails.
template <class Element>
void forward_hopper(const ForwardCall<Element>& call, Stream stream, const ForwardGrid& grid = {});

/// True when backward_hopper() takes heads of these widths.
constexpr bool takes_backward_hopper(std::int64_t head_dim, std::int64_t v_dim) {
  return head_dim <= 128 && v_dim <= 128;
}

/// Empty when backward_hopper() takes such a problem on a device of this compute capability, else
/// why not.
std::string why_not_backward_hopper(const BlockShape& shape, int compute_capability);

/// The backward pass on the current device. f16 and bf16; full speed for head_dim = v_dim = 64 or
/// 128, correct for multiples of 8 up to 128. Tiles of the mask, accuracy, and the treatment of NaN
/// and infinity are as in backward_portable(), as is dQ where `deterministic`. Nothing is launched
/// for no queries or no keys. Input error unless why_not_backward_hopper() is empty; environment
/// error naming the call when CUDA fails.
template <class Element>
void backward_hopper(const BackwardCall<Element>& call, Stream stream);

}  // namespace ringlab::cuda
