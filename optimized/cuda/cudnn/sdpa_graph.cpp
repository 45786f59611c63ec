#include "optimized/cuda/cudnn/sdpa_graph.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "optimized/cuda/portable/portable.h"
#include "reference/core/error.h"

namespace ringlab::cudnn {
namespace {

constexpr int kOldestCapability = 80;
constexpr std::int32_t kChannelsEverywhere = 128, kChannelsOfHopper = 256;

/// `count` rows of a dense (batch, heads, rows, channels) tensor; an offset says which.
SdpaTensor some_rows(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t count,
                     std::int64_t channels) {
  return {.sizes = {batch, heads, count, channels},
          .strides = {heads * rows * channels, rows * channels, channels, 1}};
}
SdpaTensor dense(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t channels) {
  return some_rows(batch, heads, rows, rows, channels);
}

/// Diagonals of a piece, from the top left corner if possible: every release of cuDNN takes those.
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

float scale_of_scores(float in_base_2) {
  return static_cast<float>(static_cast<double>(in_base_2) * std::numbers::ln2);
}

bool is_one_pair(const MaskPiece& piece) {
  return piece.query_count() == 1 && piece.key_count() == 1;
}

/// The keys of the backward graph of a piece, which may have one that the piece lacks.
struct BackwardKeys {
  cuda::KeyRange keys;
  SdpaDiagonals diagonals;
};
/// Adds a hidden key to a piece of one pair: the next key, hidden by a diagonal from the top left
/// corner, or where there is none the key before, hidden by two from the bottom right corner.
BackwardKeys backward_keys(const MaskPiece& piece, std::int32_t keys) {
  if (!is_one_pair(piece)) return {piece.keys, diagonals_of(piece)};
  if (piece.keys.last < keys) {
    return {{piece.keys.first, piece.keys.last + 1},
            {.corner = Corner::top_left, .left_bound = {}, .right_bound = 0}};
  }
  return {{piece.keys.first - 1, piece.keys.last},
          {.corner = Corner::bottom_right, .left_bound = 1, .right_bound = 0}};
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
                .scale = scale_of_scores(scale)};
  call.q_offset = std::int64_t{piece.queries.first} * shape.head_dim;
  call.k_offset = std::int64_t{piece.keys.first} * shape.head_dim;
  call.v_offset = std::int64_t{piece.keys.first} * shape.v_dim;
  return call;
}

SdpaBackwardCall sdpa_backward_call(const cuda::BlockShape& shape, const MaskPiece& piece,
                                    float scale, DType dtype, bool deterministic) {
  const BackwardKeys asked = backward_keys(piece, shape.keys);
  const std::int64_t queries = piece.query_count(), keys = asked.keys.last - asked.keys.first;
  const SdpaTensor out = some_rows(shape.batch, shape.q_heads, shape.queries, queries, shape.v_dim);
  SdpaBackwardCall call;
  call.graph = {.dtype = dtype,
                .q = some_rows(shape.batch, shape.q_heads, shape.queries, queries, shape.head_dim),
                .k = some_rows(shape.batch, shape.kv_heads, shape.keys, keys, shape.head_dim),
                .v = some_rows(shape.batch, shape.kv_heads, shape.keys, keys, shape.v_dim),
                .out = out,
                .lse = dense(shape.batch, shape.q_heads, queries, 1),
                .dout = out,
                .dq = dense(shape.batch, shape.q_heads, queries, shape.head_dim),
                .dk = dense(shape.batch, shape.kv_heads, keys, shape.head_dim),
                .dv = dense(shape.batch, shape.kv_heads, keys, shape.v_dim),
                .diagonals = asked.diagonals,
                .scale = scale_of_scores(scale),
                .deterministic = deterministic};
  call.keys = asked.keys;
  call.q_offset = std::int64_t{piece.queries.first} * shape.head_dim;
  call.k_offset = std::int64_t{asked.keys.first} * shape.head_dim;
  call.v_offset = std::int64_t{asked.keys.first} * shape.v_dim;
  call.out_offset = std::int64_t{piece.queries.first} * shape.v_dim;
  return call;
}

bool takes_backward(const MaskPiece& piece, std::int64_t keys) {
  return !is_one_pair(piece) || keys > 1;
}

bool holds_all(const cuda::BlockShape& shape, const MaskPiece& piece) {
  return holds_all_queries(shape, piece) && piece.keys == cuda::KeyRange{0, shape.keys};
}

bool holds_all_queries(const cuda::BlockShape& shape, const MaskPiece& piece) {
  return piece.queries.first == 0 && piece.queries.last == shape.queries;
}

std::string why_not_cudnn(const cuda::BlockShape& shape, float scale, int compute_capability) {
  if (compute_capability < kOldestCapability) return capability_text(compute_capability);
  // cuDNN finds maxima before it scales scores, which is right for positive factors only.
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

void check_backward_piece(const MaskPiece& piece, std::int64_t keys) {
  if (takes_backward(piece, keys)) return;
  throw_usage_error({.where = "gradients",
                     .expected = "more than one key in a chunk of keys that a single query sees",
                     .actual = "one query and one key",
                     .hint = "Use fewer ranks, or run `optimized`"});
}

}  // namespace ringlab::cudnn
