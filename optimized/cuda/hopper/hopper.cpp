#include <cmath>
#include <limits>

#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/portable.h"

namespace ringlab::cuda {
namespace {

/// Rows are counted in 32 bits, also past the end of the last block or tile.
constexpr std::int32_t kMostRows = std::numeric_limits<std::int32_t>::max() - 512;

std::string wrong_rows(const BlockShape& shape) {
  std::string reason = why_not_portable(shape);
  if (!reason.empty()) return reason;
  if (shape.queries <= kMostRows && shape.keys <= kMostRows) return "";
  return std::to_string(shape.queries) + " queries, " + std::to_string(shape.keys) + " keys";
}

std::string wrong_capability(int compute_capability) {
  if (compute_capability == 90) return "";
  return "compute capability " + std::to_string(compute_capability / 10) + "." +
         std::to_string(compute_capability % 10);
}

std::string wrong_sizes(const BlockShape& shape) {
  std::string reason = wrong_rows(shape);
  if (!reason.empty()) return reason;
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
  std::string reason = wrong_capability(compute_capability);
  if (!reason.empty()) return reason;
  if (!(scale > 0) || !std::isfinite(scale)) return "scale = " + std::to_string(scale);
  return wrong_sizes(shape);
}

std::string why_not_backward_hopper(const BlockShape& shape, int compute_capability) {
  std::string reason = wrong_capability(compute_capability);
  if (reason.empty()) reason = wrong_rows(shape);
  if (!reason.empty()) return reason;
  if (takes_backward_hopper(shape.head_dim, shape.v_dim)) return "";
  return "head_dim = " + std::to_string(shape.head_dim) +
         ", v_dim = " + std::to_string(shape.v_dim);
}

}  // namespace ringlab::cuda
