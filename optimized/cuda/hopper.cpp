#include <cmath>
#include <limits>

#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable.h"

namespace ringlab::cuda {
namespace {

/// Rows of keys are counted in 32 bits, also past the end of the last block.
constexpr std::int32_t kMostKeys = std::numeric_limits<std::int32_t>::max() - 512;

std::string wrong_sizes(const BlockShape& shape) {
  std::string reason = why_not_portable(shape);
  if (!reason.empty()) return reason;
  if (shape.keys > kMostKeys) {
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
