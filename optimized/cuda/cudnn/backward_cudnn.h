// cuDNN's attention as the backward kernel of rings.
//
// cuDNN gives dq, dk and dv of a piece of the mask (mask_pieces.h), rounded and with the factor
// `scale`, from lse and o of all keys. If the pass has one block and its mask is one piece, a
// single call writes the results themselves. Other calls write gradients into memory of their own,
// from where row kernels add them to the sums in f32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "optimized/cuda/cudnn/sdpa_runner.h"
#include "optimized/cuda/cudnn/stream_scratch.h"
#include "optimized/cuda/row_calls.h"

namespace ringlab::cudnn {

/// The parts that do the work, on the current device.
template <class Element>
struct CudnnBackwardParts {
  SdpaRunner runner;
  std::function<void(const cuda::AddRows<Element>&, cuda::Stream)> add_rows;
  std::function<void(const cuda::PackRows&, cuda::Stream)> pack_rows;
};

/// DeviceKernels::backward, with sums that are scaled. Usage error for a mask of more than
/// kMostPieces pieces, or with a piece that cuDNN does not take; errors of the runner pass through.
/// Copies share their memory.
template <class Element>
class CudnnBackward {
 public:
  explicit CudnnBackward(CudnnBackwardParts<Element> parts,
                         std::shared_ptr<StreamScratch> scratch = std::make_shared<StreamScratch>())
      : parts_(std::move(parts)), scratch_(std::move(scratch)) {}

  /// DeviceKernels::gives_results.
  static bool gives_results(const cuda::BackwardCall<Element>& call) {
    return is_one_call(call, cut(call));
  }

  /// Bytes that the call uses on its stream, on the current device, where gradients are added to
  /// sums.
  /// Pointers are not looked at.
  std::int64_t scratch_bytes(const cuda::BackwardCall<Element>& call) const {
    std::int64_t most = 0;
    for (const MaskPiece& piece : pieces_of(call)) {
      most = std::max(most, layout_of(asked_for(call, piece).graph).bytes);
    }
    return most;
  }
  /// Bytes that a call uses on its stream where gives_results().
  std::int64_t scratch_bytes_with_results(const cuda::BackwardCall<Element>& call) const {
    return workspace_bytes(asked_for(call, pieces_of(call).front()));
  }

  void operator()(const cuda::BackwardCall<Element>& call, cuda::Stream stream) const {
    const std::vector<MaskPiece> pieces = pieces_of(call);
    if (call.results.dq && is_one_call(call, pieces)) {
      return differentiate(call, pieces.front(), stream);
    }
    for (const MaskPiece& piece : pieces) differentiate_and_add(call, piece, stream);
  }

 private:
  using Call = cuda::BackwardCall<Element>;

  static std::vector<MaskPiece> cut(const Call& call) {
    return cut_mask({call.mask.host_rows, static_cast<std::size_t>(call.shape.queries)});
  }
  static bool is_one_call(const Call& call, const std::vector<MaskPiece>& pieces) {
    return pieces.size() == 1 && holds_all(call.shape, pieces.front());
  }
  static std::vector<MaskPiece> pieces_of(const Call& call) {
    std::vector<MaskPiece> pieces = cut(call);
    check_piece_count(pieces.size());
    for (const MaskPiece& piece : pieces) check_backward_piece(piece, call.shape.keys);
    return pieces;
  }
  static SdpaBackwardCall asked_for(const Call& call, const MaskPiece& piece) {
    return sdpa_backward_call(call.shape, piece, call.scale, dtype_of<Element>, call.deterministic);
  }
  static SdpaBackwardPointers inputs(const Call& call, const SdpaBackwardCall& asked) {
    SdpaBackwardPointers pointers;
    pointers.q = call.q + asked.q_offset;
    pointers.k = call.k + asked.k_offset;
    pointers.v = call.v + asked.v_offset;
    pointers.out = call.out + asked.out_offset;
    pointers.dout = call.dout + asked.out_offset;
    pointers.lse = call.lse;
    return pointers;
  }

  static std::int64_t q_heads(const Call& call) {
    return std::int64_t{call.shape.batch} * call.shape.q_heads;
  }
  static std::int64_t kv_heads(const Call& call) {
    return std::int64_t{call.shape.batch} * call.shape.kv_heads;
  }

  /// Memory from the runner's workspace on, in bytes before each part; see aligned_bytes().
  struct BackwardWorkspace {
    std::int64_t lse = 0, dq = 0, dk = 0, dv = 0;
    std::int64_t bytes = 0;
  };
  static std::int64_t dense_bytes(const SdpaTensor& tensor, std::int64_t of_each) {
    return aligned_bytes(tensor.sizes[0] * tensor.strides[0] * of_each);
  }
  BackwardWorkspace layout_of(const SdpaBackwardGraph& graph) const {
    constexpr auto kElement = static_cast<std::int64_t>(sizeof(Element));
    BackwardWorkspace layout;
    layout.lse = aligned_bytes(parts_.runner.backward_workspace_bytes(graph));
    layout.dq = layout.lse + dense_bytes(graph.lse, sizeof(float));
    layout.dk = layout.dq + dense_bytes(graph.dq, kElement);
    layout.dv = layout.dk + dense_bytes(graph.dk, kElement);
    layout.bytes = layout.dv + dense_bytes(graph.dv, kElement);
    return layout;
  }

  std::int64_t workspace_bytes(const SdpaBackwardCall& asked) const {
    return aligned_bytes(parts_.runner.backward_workspace_bytes(asked.graph));
  }

  void differentiate(const Call& call, const MaskPiece& piece, cuda::Stream stream) const {
    const SdpaBackwardCall asked = asked_for(call, piece);
    SdpaBackwardPointers pointers = inputs(call, asked);
    pointers.dq = call.results.dq;
    pointers.dk = call.results.dk;
    pointers.dv = call.results.dv;
    pointers.workspace = scratch_->of(cuda::current_device(), stream, workspace_bytes(asked));
    parts_.runner.run_backward(asked.graph, pointers, stream);
  }

  void differentiate_and_add(const Call& call, const MaskPiece& piece, cuda::Stream stream) const {
    const SdpaBackwardCall asked = asked_for(call, piece);
    const BackwardWorkspace layout = layout_of(asked.graph);
    std::byte* const memory = scratch_->of(cuda::current_device(), stream, layout.bytes);
    const auto part = [&](std::int64_t at) { return reinterpret_cast<Element*>(memory + at); };
    Element *const dq = part(layout.dq), *const dk = part(layout.dk), *const dv = part(layout.dv);
    SdpaBackwardPointers pointers = inputs(call, asked);
    pointers.workspace = memory;
    pointers.dq = dq;
    pointers.dk = dk;
    pointers.dv = dv;
    if (!holds_all_queries(call.shape, piece)) {
      auto* const packed = reinterpret_cast<float*>(memory + layout.lse);
      pack_lse(call, piece, packed, stream);
      pointers.lse = packed;
    }
    parts_.runner.run_backward(asked.graph, pointers, stream);
    const cuda::BlockShape& shape = call.shape;
    add({.heads = q_heads(call), .rows = shape.queries, .channels = shape.head_dim, .to = call.dq},
        piece.queries, dq, stream);
    add({.heads = kv_heads(call), .rows = shape.keys, .channels = shape.head_dim, .to = call.dk},
        asked.keys, dk, stream);
    add({.heads = kv_heads(call), .rows = shape.keys, .channels = shape.v_dim, .to = call.dv},
        asked.keys, dv, stream);
  }

  /// Packs lse of the piece: releases of cuDNN before 9.26 read no other layout.
  void pack_lse(const Call& call, const MaskPiece& piece, float* packed,
                cuda::Stream stream) const {
    parts_.pack_rows({.heads = q_heads(call),
                      .rows = call.shape.queries,
                      .first = piece.queries.first,
                      .count = piece.query_count(),
                      .from = call.lse,
                      .to = packed},
                     stream);
  }

  void add(cuda::AddRows<Element> rows, const cuda::KeyRange& which, const Element* from,
           cuda::Stream stream) const {
    rows.first = which.first;
    rows.count = which.last - which.first;
    rows.from = from;
    parts_.add_rows(rows, stream);
  }

  CudnnBackwardParts<Element> parts_;
  std::shared_ptr<StreamScratch> scratch_;
};

}  // namespace ringlab::cudnn
