// cuDNN's attention as a block kernel of rings, with the calls of kernels.h and portable.h.
//
// cuDNN gives o and lse and knows no running state. A block whose mask is one piece (mask_pieces.h)
// that all queries are in, on a ring of one, is one call that writes the results themselves. Other
// calls write o, rounded, and lse into memory of their own, which row kernels merge into the
// running state: a pass more for each piece of each hop, and a rounding more for each merge.
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
struct CudnnParts {
  SdpaRunner runner;
  std::function<void(const cuda::ClearStates&, cuda::Stream)> clear_states;
  std::function<void(const cuda::MergeRows<Element>&, cuda::Stream)> merge_rows;
  std::function<void(const cuda::FinishRows<Element>&, cuda::Stream)> finish_rows;
};

/// DeviceKernels::forward. Usage error for a mask of more than kMostPieces pieces; errors of the
/// runner pass through. Copies share their memory.
template <class Element>
class CudnnForward {
 public:
  explicit CudnnForward(CudnnParts<Element> parts,
                        std::shared_ptr<StreamScratch> scratch = std::make_shared<StreamScratch>())
      : parts_(std::move(parts)), scratch_(std::move(scratch)) {}

  /// True when one call of cuDNN writes the results, and leaves the running state alone.
  static bool leaves_state(const cuda::ForwardCall<Element>& call) {
    return is_one_call(call, pieces_of(call));
  }
  /// Bytes that the call uses on its stream, on the current device. Pointers are not looked at.
  std::int64_t scratch_bytes(const cuda::ForwardCall<Element>& call) const {
    const std::vector<MaskPiece> pieces = pieces_of(call);
    const bool merges = !is_one_call(call, pieces);
    std::int64_t most = 0;
    for (const MaskPiece& piece : pieces) {
      const std::int64_t result_rows = merges ? heads(call) * piece.query_count() : 0;
      most = std::max(most, layout_of(asked_for(call, piece).graph, result_rows).bytes);
    }
    return most;
  }

  void operator()(const cuda::ForwardCall<Element>& call, cuda::Stream stream) const {
    const std::vector<MaskPiece> pieces = pieces_of(call);
    if (is_one_call(call, pieces)) return attend(call, pieces.front(), stream);
    if (call.begins) {
      parts_.clear_states(
          {.rows = rows(call), .channels = call.shape.v_dim, .running = call.running}, stream);
    }
    for (const MaskPiece& piece : pieces) attend_and_merge(call, piece, stream);
    if (!call.finishes) return;
    parts_.finish_rows({.rows = rows(call),
                        .channels = call.shape.v_dim,
                        .running = call.running,
                        .out = call.out,
                        .lse = call.lse},
                       stream);
  }

 private:
  using Call = cuda::ForwardCall<Element>;

  static std::int64_t heads(const Call& call) {
    return std::int64_t{call.shape.batch} * call.shape.q_heads;
  }
  static std::int64_t rows(const Call& call) { return heads(call) * call.shape.queries; }

  static std::vector<MaskPiece> pieces_of(const Call& call) {
    std::vector<MaskPiece> pieces =
        cut_mask({call.mask.host_rows, static_cast<std::size_t>(call.shape.queries)});
    check_piece_count(pieces.size());
    return pieces;
  }

  static bool is_one_call(const Call& call, const std::vector<MaskPiece>& pieces) {
    return call.begins && call.finishes && pieces.size() == 1 &&
           holds_all_queries(call.shape, pieces.front());
  }
  static SdpaCall asked_for(const Call& call, const MaskPiece& piece) {
    return sdpa_call(call.shape, piece, call.scale, dtype_of<Element>);
  }

  /// Memory behind the runner's workspace, whose size is rounded up to align the next part.
  struct ForwardWorkspace {
    std::int64_t out = 0;  ///< bytes before it
    std::int64_t lse = 0;
    std::int64_t bytes = 0;
  };
  ForwardWorkspace layout_of(const SdpaGraph& graph, std::int64_t result_rows) const {
    const std::int64_t out = aligned_bytes(parts_.runner.workspace_bytes(graph));
    const std::int64_t lse =
        out + aligned_bytes(result_rows * graph.out.sizes[3] * std::int64_t{sizeof(Element)});
    return {.out = out,
            .lse = lse,
            .bytes = lse + aligned_bytes(result_rows * std::int64_t{sizeof(float)})};
  }

  static SdpaPointers inputs(const Call& call, const SdpaCall& asked) {
    return {
        .q = call.q + asked.q_offset, .k = call.k + asked.k_offset, .v = call.v + asked.v_offset};
  }

  void attend(const Call& call, const MaskPiece& piece, cuda::Stream stream) const {
    const SdpaCall asked = asked_for(call, piece);
    SdpaPointers pointers = inputs(call, asked);
    pointers.out = call.out;
    pointers.lse = call.lse;
    pointers.workspace =
        scratch_->of(cuda::current_device(), stream, layout_of(asked.graph, 0).bytes);
    parts_.runner.run(asked.graph, pointers, stream);
  }

  void attend_and_merge(const Call& call, const MaskPiece& piece, cuda::Stream stream) const {
    const SdpaCall asked = asked_for(call, piece);
    const ForwardWorkspace layout = layout_of(asked.graph, heads(call) * piece.query_count());
    SdpaPointers pointers = inputs(call, asked);
    pointers.workspace = scratch_->of(cuda::current_device(), stream, layout.bytes);
    auto* const out = reinterpret_cast<Element*>(pointers.workspace + layout.out);
    pointers.out = out;
    pointers.lse = reinterpret_cast<float*>(pointers.workspace + layout.lse);
    parts_.runner.run(asked.graph, pointers, stream);
    parts_.merge_rows({.heads = heads(call),
                       .queries = call.shape.queries,
                       .first = piece.queries.first,
                       .count = piece.query_count(),
                       .channels = call.shape.v_dim,
                       .out = out,
                       .lse = pointers.lse,
                       .running = call.running},
                      stream);
  }

  CudnnParts<Element> parts_;
  std::shared_ptr<StreamScratch> scratch_;
};

}  // namespace ringlab::cudnn
