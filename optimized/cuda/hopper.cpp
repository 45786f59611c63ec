#include <cmath>
#include <limits>

#include "optimized/cuda/kernels.h"

namespace ringlab::cuda {
namespace {

bool is_width(std::int32_t channels) {
  return channels > 0 && channels <= 256 && channels % 8 == 0;
}

/// Rows of keys are counted in 32 bits, also past the end of the last block.
constexpr std::int32_t kMostKeys = std::numeric_limits<std::int32_t>::max() - 512;

std::string wrong_sizes(const BlockShape& shape) {
  if (!is_width(shape.head_dim)) return "head_dim = " + std::to_string(shape.head_dim);
  if (!is_width(shape.v_dim)) return "v_dim = " + std::to_string(shape.v_dim);
  if (shape.batch < 1 || shape.kv_heads < 1 || shape.q_heads < 1 ||
      shape.q_heads % shape.kv_heads != 0) {
    return std::to_string(shape.q_heads) + " query heads for " + std::to_string(shape.kv_heads) +
           " K/V heads";
  }
  if (shape.queries < 0 || shape.keys < 0 || shape.keys > kMostKeys) {
    return std::to_string(shape.queries) + " queries, " + std::to_string(shape.keys) + " keys";
  }
  const std::int64_t height = forward_hopper_tile_queries(shape.head_dim, shape.v_dim);
  const std::int64_t tiles = (shape.queries + height - 1) / height;
  const std::int64_t heads = std::int64_t{shape.batch} * shape.q_heads;
  if (tiles > 0 && heads > std::numeric_limits<std::int32_t>::max() / tiles) {
    return std::to_string(tiles) + " tiles of queries for " + std::to_string(heads) + " heads";
  }
  return "";
}

}  // namespace

std::string why_not_hopper(const BlockShape& shape, float scale, int compute_capability) {
  if (compute_capability != 90) {
    return "compute capability " + std::to_string(compute_capability / 10) + "." +
           std::to_string(compute_capability % 10);
  }
  if (!(scale > 0) || !std::isfinite(scale)) return "scale = " + std::to_string(scale);
  return wrong_sizes(shape);
}

}  // namespace ringlab::cuda
