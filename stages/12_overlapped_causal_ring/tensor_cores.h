// Kernels of stage 12 on devices: those for tensor cores where they take the problem.
#pragma once

#include "optimized/cpu/block_kernel.h"
#include "optimized/cuda/kernel_profile.h"
#include "optimized/cuda/portable/portable.h"
#include "optimized/cuda/visible_keys.h"
#include "stages/common/profiles.h"

namespace ringlab::stages::overlapped_causal_ring {

/// True when kernels for tensor cores compute a run; else the tile program does.
inline bool takes_fast_kernel(const Problem& problem, const RunOptions& options) {
  if (problem.dtype != DType::f16 && problem.dtype != DType::bf16) return false;
  const Shape& s = problem.shape;
  const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  const ringlab::cuda::BlockShape block{.batch = narrow(s.batch),
                                        .q_heads = narrow(s.q_heads),
                                        .kv_heads = narrow(s.kv_heads),
                                        .head_dim = narrow(s.head_dim),
                                        .v_dim = narrow(s.v_dim)};
  if (problem.mask.has_bits() || !ringlab::cuda::why_not_portable(block).empty()) return false;
  const Layout keys = make_layout(options, s.kv_tokens, options.kv_layout);
  for (int owner = 0; owner < options.ranks; ++owner) {
    if (!ringlab::cuda::positions_increase(keys.positions(owner))) return false;
  }
  return true;
}

/// Numerics of the kernel that computes.
inline NumericsProfile profile_on_devices(const Problem& problem, const RunOptions& options) {
  const Layout layout = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  const bool fast = takes_fast_kernel(problem, options);
  std::int64_t tiles = fast ? 1 : 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    const Positions& held = layout.positions(owner);
    tiles += fast ? ringlab::cuda::most_blocks_met(held.size())
                  : cpu::key_blocks(held, options.tile_keys);
  }
  return fast ? ringlab::cuda::hopper_profile(problem.dtype, tiles)
              : stage_profile(problem, options, tiles);
}

}  // namespace ringlab::stages::overlapped_causal_ring
