// A graph of cuDNN for one piece of a block, as plain values: sizes, strides, diagonals. No cuDNN
// header is seen here; graphs are built from these in sdpa_plans.cpp.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/cudnn/mask_pieces.h"
#include "reference/core/dtype.h"

namespace ringlab::cudnn {

/// Sizes and strides in elements: batch, heads, rows, channels.
struct SdpaTensor {
  std::array<std::int64_t, 4> sizes = {};
  std::array<std::int64_t, 4> strides = {};
  friend auto operator<=>(const SdpaTensor&, const SdpaTensor&) = default;
};

/// The corner where diagonals begin: query 0 meets key 0, or the last query meets the last key.
enum class Corner { top_left, bottom_right };

/// Bounds on either side. With s = keys - queries from the bottom right corner and 0 from the top
/// left one, query i sees key j where j <= i + s + right_bound and j > i + s - left_bound.
struct SdpaDiagonals {
  Corner corner = Corner::top_left;
  std::optional<std::int32_t> left_bound;
  std::optional<std::int32_t> right_bound;
  friend auto operator<=>(const SdpaDiagonals&, const SdpaDiagonals&) = default;
};

/// A forward pass, o and lse (natural, f32). Plans are kept under it as their key.
struct SdpaGraph {
  DType dtype = DType::bf16;
  SdpaTensor q, k, v, out, lse;
  SdpaDiagonals diagonals;
  float scale = 1;  ///< of scores; not times log2 e
  friend auto operator<=>(const SdpaGraph&, const SdpaGraph&) = default;
};

/// The graph, and the offsets in elements of its q, k and v in the block's tensors.
struct SdpaCall {
  SdpaGraph graph;
  std::int64_t q_offset = 0;
  std::int64_t k_offset = 0;
  std::int64_t v_offset = 0;
};

/// out and lse are dense, with the piece's queries only. `scale` is the block's, times log2 e.
SdpaCall sdpa_call(const cuda::BlockShape& shape, const MaskPiece& piece, float scale, DType dtype);

/// A backward pass: dq, dk and dv, each rounded, from o and lse (natural, f32) of all keys. dk and
/// dv are summed up over the query heads that read a K/V head. A key of plans, too.
struct SdpaBackwardGraph {
  DType dtype = DType::bf16;
  SdpaTensor q, k, v, out, lse, dout, dq, dk, dv;
  SdpaDiagonals diagonals;
  float scale = 1;             ///< of scores; dq and dk have it as a factor
  bool deterministic = false;  ///< by memory of queries times keys on most devices
  friend auto operator<=>(const SdpaBackwardGraph&, const SdpaBackwardGraph&) = default;
};

/// The graph, its keys among the block's, and the offsets in elements of its q, k, v and out (as
/// dout) in the block's tensors.
struct SdpaBackwardCall {
  SdpaBackwardGraph graph;
  cuda::KeyRange keys;
  std::int64_t q_offset = 0;
  std::int64_t k_offset = 0;
  std::int64_t v_offset = 0;
  std::int64_t out_offset = 0;
};

/// lse, dq, dk and dv are dense, with the piece's queries and keys only. A piece of one query and
/// one key, which cuDNN does not take, has a key beside it that is hidden.
SdpaBackwardCall sdpa_backward_call(const cuda::BlockShape& shape, const MaskPiece& piece,
                                    float scale, DType dtype, bool deterministic);

/// True when cuDNN takes the backward pass of the piece of a block of so many keys: not of one
/// query and the block's only key.
bool takes_backward(const MaskPiece& piece, std::int64_t keys);

/// True when the piece holds all queries and keys, so that its gradients are the block's.
bool holds_all(const cuda::BlockShape& shape, const MaskPiece& piece);

/// True when the piece holds all queries, so that its out and lse are the block's.
bool holds_all_queries(const cuda::BlockShape& shape, const MaskPiece& piece);

/// Empty when cuDNN may be asked for such a block on a device of this compute capability (90 for
/// 9.0), else why not. cuDNN still refuses some blocks that pass: Refusal.
std::string why_not_cudnn(const cuda::BlockShape& shape, float scale, int compute_capability);

/// The most pieces of a block: each of another size needs a plan of its own, which takes cuDNN a
/// good part of a second to make.
inline constexpr std::size_t kMostPieces = 128;
/// Usage error for more than kMostPieces.
void check_piece_count(std::size_t pieces);
/// Usage error unless takes_backward().
void check_backward_piece(const MaskPiece& piece, std::int64_t keys);

}  // namespace ringlab::cudnn
