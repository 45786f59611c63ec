#include "optimized/cuda/cudnn/sdpa_graph.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "optimized/cuda/portable.h"
#include "reference/core/error.h"

namespace ringlab::cudnn {
namespace {

constexpr int kOldestCapability = 80;
constexpr std::int32_t kChannelsEverywhere = 128, kChannelsOfHopper = 256;

/// Rows `count` of a dense (batch, heads, rows, channels) tensor; which, an offset says.
SdpaTensor some_rows(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t count,
                     std::int64_t channels) {
  return {.sizes = {batch, heads, count, channels},
          .strides = {heads * rows * channels, rows * channels, channels, 1}};
}
SdpaTensor dense(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t channels) {
  return some_rows(batch, heads, rows, rows, channels);
}

/// From the top left corner wherever that says the same: every release takes it.
SdpaDiagonals diagonals_of(const MaskPiece& piece) {
  const std::int32_t shift = piece.key_count() - piece.query_count();
  SdpaDiagonals diagonals;
  if (piece.rises) {
    diagonals.right_bound = 0;
    if (shift > 0) diagonals.corner = Corner::bottom_right;
  }
  if (piece.leaves) diagonals.left_bound = piece.rises ? shift + 1 : 1;
  return diagonals;
}

std::string capability_text(int capability) {
  return "compute capability " + std::to_string(capability / 10) + "." +
         std::to_string(capability % 10);
}

std::string too_wide(const cuda::BlockShape& shape, int capability) {
  const std::int32_t widest = std::max(shape.head_dim, shape.v_dim);
  if (widest <= kChannelsEverywhere) return "";
  const bool same = shape.head_dim == shape.v_dim;
  if (capability == 90 && same && widest <= kChannelsOfHopper) return "";
  return "head_dim = " + std::to_string(shape.head_dim) +
         ", v_dim = " + std::to_string(shape.v_dim) + " on " + capability_text(capability);
}

}  // namespace

SdpaCall sdpa_call(const cuda::BlockShape& shape, const MaskPiece& piece, float scale,
                   DType dtype) {
  const std::int64_t queries = piece.query_count(), keys = piece.key_count();
  SdpaCall call;
  call.graph = {.dtype = dtype,
                .q = some_rows(shape.batch, shape.q_heads, shape.queries, queries, shape.head_dim),
                .k = some_rows(shape.batch, shape.kv_heads, shape.keys, keys, shape.head_dim),
                .v = some_rows(shape.batch, shape.kv_heads, shape.keys, keys, shape.v_dim),
                .out = dense(shape.batch, shape.q_heads, queries, shape.v_dim),
                .lse = dense(shape.batch, shape.q_heads, queries, 1),
                .diagonals = diagonals_of(piece),
                .scale = static_cast<float>(static_cast<double>(scale) * std::numbers::ln2)};
  call.q_offset = std::int64_t{piece.queries.first} * shape.head_dim;
  call.k_offset = std::int64_t{piece.keys.first} * shape.head_dim;
  call.v_offset = std::int64_t{piece.keys.first} * shape.v_dim;
  return call;
}

bool holds_all_queries(const cuda::BlockShape& shape, const MaskPiece& piece) {
  return piece.queries.first == 0 && piece.queries.last == shape.queries;
}

std::string why_not_cudnn(const cuda::BlockShape& shape, float scale, int compute_capability) {
  if (compute_capability < kOldestCapability) return capability_text(compute_capability);
  // The maximum of scores that are multiplied later is theirs for positive factors only.
  if (!(scale > 0) || !std::isfinite(scale)) return "scale = " + std::to_string(scale);
  const std::string reason = cuda::why_not_portable(shape);
  return reason.empty() ? too_wide(shape, compute_capability) : reason;
}

void check_piece_count(std::size_t pieces) {
  if (pieces <= kMostPieces) return;
  throw_usage_error({.where = "mask",
                     .expected = std::to_string(kMostPieces) + " pieces of a block at most",
                     .actual = std::to_string(pieces),
                     .hint = "Give queries and keys the same layout, or run `optimized`"});
}

}  // namespace ringlab::cudnn
