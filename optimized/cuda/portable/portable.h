// The kernels for tensor cores of every GPU since sm_80, as host functions. All of them only put
// work on the stream; memory stays the caller's.
//
// Shapes: head_dim and v_dim multiples of 8 up to 256, different ones if need be; q_heads a
// multiple of kv_heads. Calls: attention_call.h. Types: f16 and bf16 (the stages' kernels take the
// others). Accuracy: kernel_profile.h. NaN and infinity: forward_portable.cuh,
// backward_tiles.cuh. Errors: input errors for shapes, environment errors that name the launch.
#pragma once

#include <cstdint>
#include <string>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/row_calls.h"
#include "optimized/cuda/stream.h"

namespace ringlab::cuda {

/// Queries of a tile of BlockMask::tiles.
constexpr std::int32_t forward_portable_tile_queries() { return 64; }
/// Queries of such a tile for the backward pass.
constexpr std::int32_t backward_portable_tile_queries(std::int32_t head_dim, std::int32_t v_dim) {
  return head_dim > 64 || v_dim > 64 ? 32 : 64;
}

/// Empty when the kernels take the shape, else what is wrong with it.
std::string why_not_portable(const BlockShape& shape);

/// The forward pass. Nothing is launched for no queries; with no keys it begins or finishes the
/// running state.
template <class Element>
void forward_portable(const ForwardCall<Element>& call, Stream stream);

/// The backward pass: two launches where `deterministic`, else one. Sums of dq are f32 atomic
/// additions, or, where `deterministic`, sums of one block in the order of keys.
template <class Element>
void backward_portable(const BackwardCall<Element>& call, Stream stream);

/// Sets states and accs of a running state to those of empty rows.
void clear_states(const ClearStates& call, Stream stream);
/// Turns the running state into out and lse.
template <class Element>
void finish_rows(const FinishRows<Element>& call, Stream stream);
/// Merges finished rows into a running state.
template <class Element>
void merge_rows(const MergeRows<Element>& call, Stream stream);
/// Adds rows of the problem's type to sums in f32.
template <class Element>
void add_rows(const AddRows<Element>& call, Stream stream);
/// Packs numbers of some rows, one after the other.
void pack_rows(const PackRows& call, Stream stream);
/// Σ_c dout out of every row, in f32.
template <class Element>
void delta_rows(const DeltaRows<Element>& call, Stream stream);
/// to = scale · from, rounded once more to the type of `to`.
template <class Element>
void scale_to(const ScaleTo<Element>& call, Stream stream);

}  // namespace ringlab::cuda
