// The numerics profile every stage starts from.
#pragma once

#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab::stages {

/// State in f32 (f64 for f64) from the first key to the last, with `max_rescales` rescales at most.
/// The exp of the C library is within 1 ulp; for CUDA twice that is assumed.
inline NumericsProfile stage_profile(const Problem& problem, const RunOptions& options,
                                     std::int64_t max_rescales) {
  NumericsProfile profile = carried_profile(problem.dtype, max_rescales);
  const double ulp = problem.dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
  profile.exp_error = options.device == DeviceKind::cuda ? 2 * ulp : ulp;
  return profile;
}

/// Keys in the chunk of `rank`, and of the rank that has most.
std::int64_t chunk_tokens(const Problem& problem, const RunOptions& options, int rank);
std::int64_t largest_chunk(const Problem& problem, const RunOptions& options);

/// Tiles that `keys` keys are cut into.
inline std::int64_t tiles_of(std::int64_t keys, std::int64_t tile_keys) {
  return (keys + tile_keys - 1) / tile_keys;
}

/// Tiles that the chunks of all ranks are cut into, each chunk for itself.
inline std::int64_t tiles_of_chunks(const Problem& problem, const RunOptions& options) {
  std::int64_t tiles = 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    tiles += tiles_of(chunk_tokens(problem, options, owner), options.tile_keys);
  }
  return tiles;
}

}  // namespace ringlab::stages
