// The cases measured on a device: attention in bf16, and attention beside copies.
#pragma once

#include <cstdint>
#include <string>

#include "optimized/cuda/kernels.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::bench {

/// One batch entry, as many queries as keys. The default heads are those of the published figures
/// that docs/performance.md names.
struct GpuCase {
  Pass pass = Pass::forward;
  std::string mask = "full";  ///< or "causal"
  std::int64_t tokens = 8192;
  std::int64_t head_dim = 128;
  std::int64_t q_heads = 64;
  std::int64_t kv_heads = 8;

  /// Counts the pairs that the mask allows, of one head.
  std::int64_t pairs() const;
  /// Two products forward, five backward, 2 operations for each pair and channel.
  double flops() const;
  /// Bytes of K and V, in bf16, which a hop moves.
  std::int64_t kv_bytes() const;
  /// "causal, 8k tokens, head_dim 128"
  std::string text() const;
  /// The line that asks PyTorch for the case, by one of its back ends.
  std::string request(const std::string& backend) const;
};

/// 2 n³.
double matrix_flops(std::int64_t n);

/// "4k", or all digits where it is not a multiple of 1024.
std::string tokens_text(std::int64_t tokens);

/// Source of a hop's bytes: other memory of the device, or pinned memory of the host, by copy
/// engines; or the device itself by NCCL, whose copies are kernels.
enum class HopFrom { device, host, nccl };
/// Parts of a step that are run: the kernel, the copies, both at the same time; kernel_of_both
/// runs both and stops the clock when the kernel ends.
enum class HopPart { kernel, copies, both, kernel_of_both };

/// Steps of a ring without the ring: a forward kernel on one stream, on another `copies` copies of
/// `bytes` each; a step begins when both have ended.
struct HopCase {
  GpuCase attention = {};
  HopPart part = HopPart::both;
  HopFrom from = HopFrom::host;
  std::int64_t bytes = 0;
  cuda::ForwardGrid grid = {};
  int nccl_blocks = 0;  ///< thread blocks of NCCL's copies, at most; 0: as NCCL likes
  int copies = 1;
  int steps = 1;
};

}  // namespace ringlab::bench
