#include "optimized/ring/vendor/cudnn_engine.h"

#include <algorithm>
#include <numbers>

#include "optimized/cuda/cudnn/cudnn_profile.h"
#include "optimized/cuda/cudnn/sdpa_graph.h"
#include "optimized/cuda/visible_keys.h"
#include "optimized/ring/host/wire.h"
#include "optimized/ring/padded_channels.h"
#include "optimized/ring/vendor/cudnn_run.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

constexpr int kHopper = 90;                     // takes all that any device takes
constexpr std::int64_t kFewestKeysAtOnce = 32;  // of a block of keys of any kernel that is known

struct CudnnLayouts {
  CudnnLayouts(const Problem& problem, const RunOptions& options)
      : queries(make_layout(options, problem.shape.q_tokens, options.q_layout)),
        keys(make_layout(options, problem.shape.kv_tokens, options.kv_layout)) {}
  Layout queries, keys;
};

/// Pieces of the mask of the block of `rank`'s queries and `owner`'s keys.
std::vector<cudnn::MaskPiece> pieces_of_block(const Problem& problem, const CudnnLayouts& layouts,
                                              int rank, int owner) {
  return cudnn::cut_mask(cuda::visible_rows(problem.mask, layouts.queries.positions(rank),
                                            layouts.keys.positions(owner)));
}

/// Facts of the mask over all blocks.
struct MaskFacts {
  std::size_t most_pieces = 0;     ///< of one block
  bool has_backward = true;        ///< cuDNN's backward pass takes all pieces
  std::int64_t most_of_a_key = 0;  ///< pieces that hold the same key
};
MaskFacts mask_facts(const Problem& problem, const RunOptions& options) {
  const CudnnLayouts layouts(problem, options);
  MaskFacts facts;
  for (int owner = 0; owner < options.ranks; ++owner) {
    const std::int64_t keys = layouts.keys.positions(owner).size();
    std::vector<std::int64_t> begun(static_cast<std::size_t>(keys) + 1);  // less those that ended
    for (int rank = 0; rank < options.ranks; ++rank) {
      const auto pieces = pieces_of_block(problem, layouts, rank, owner);
      facts.most_pieces = std::max(facts.most_pieces, pieces.size());
      for (const cudnn::MaskPiece& piece : pieces) {
        facts.has_backward = facts.has_backward && cudnn::takes_backward(piece, keys);
        ++begun[static_cast<std::size_t>(piece.keys.first)];
        --begun[static_cast<std::size_t>(piece.keys.last)];
      }
    }
    std::int64_t holding = 0;
    for (const std::int64_t change : begun) {
      holding += change;
      facts.most_of_a_key = std::max(facts.most_of_a_key, holding);
    }
  }
  return facts;
}

std::string shape_reason(const Problem& problem) {
  const Problem padded = with_padded_channels(problem);
  const Shape& s = padded.shape;
  const cuda::BlockShape shape{.q_heads = static_cast<std::int32_t>(s.q_heads),
                               .kv_heads = static_cast<std::int32_t>(s.kv_heads),
                               .head_dim = static_cast<std::int32_t>(s.head_dim),
                               .v_dim = static_cast<std::int32_t>(s.v_dim)};
  return cudnn::why_not_cudnn(shape, static_cast<float>(problem.scale * std::numbers::log2e),
                              kHopper);
}

/// True for a pass that is a single call of cuDNN, whose results are those of the run.
struct OneCall {
  bool forward = false, backward = false;
};
OneCall one_call(const Problem& problem, const RunOptions& options) {
  if (options.ranks > 1 || problem.shape.q_tokens == 0) return {};
  const auto pieces = pieces_of_block(problem, CudnnLayouts(problem, options), 0, 0);
  const bool all_queries =
      pieces.size() == 1 && pieces.front().query_count() == problem.shape.q_tokens;
  return {all_queries, all_queries && pieces.front().key_count() == problem.shape.kv_tokens};
}

}  // namespace

std::string why_not_on_cudnn(const Problem& problem, const RunOptions& options, Pass last_pass) {
  const Modifiers& modifiers = problem.modifiers;
  if (problem.dtype != DType::f16 && problem.dtype != DType::bf16) {
    return "does not compute in " + std::string(dtype_info(problem.dtype).name);
  }
  if (modifiers.changes_scores() || modifiers.dropout != 0 || !modifiers.sinks.empty()) {
    return "knows no score modifiers";
  }
  if (problem.mask.has_bits()) return "takes no mask of bits";
  if (is_lossy(options.wire, problem.dtype)) return "takes no wire that rounds K and V";
  if (options.as_graph) return "is not captured as a graph";
  const std::string reason = shape_reason(problem);
  if (!reason.empty()) return "takes no " + reason;
  const MaskFacts facts = mask_facts(problem, options);
  if (facts.most_pieces > cudnn::kMostPieces) {
    return "takes no mask of " + std::to_string(facts.most_pieces) + " pieces, " +
           std::to_string(cudnn::kMostPieces) + " at most";
  }
  if (last_pass == Pass::forward || facts.has_backward) return "";
  return "gives no gradients where a chunk has one key and a single query sees it";
}

bool cudnn_available() { return is_cudnn_compiled_in(); }

void require_cudnn() { require_cudnn_and_devices(); }

NotOnCudnn::NotOnCudnn(std::string reason)
    : Error(ErrorKind::usage,
            {.where = "cudnn",
             .expected = "what cuDNN's attention takes",
             .actual = "that it " + reason,
             .hint = "`optimized` has kernels of its own, on devices and the CPU"}),
      reason_(std::move(reason)) {}

void check_on_cudnn(const Problem& problem, const RunOptions& options, Pass last_pass) {
  const std::string reason = why_not_on_cudnn(problem, options, last_pass);
  if (!reason.empty()) throw NotOnCudnn(reason);
}

NumericsProfile cudnn_engine_profile(const Problem& problem, const RunOptions& options) {
  const CudnnLayouts layouts(problem, options);
  std::int64_t blocks = 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    blocks += (layouts.keys.positions(owner).size() + kFewestKeysAtOnce - 1) / kFewestKeysAtOnce;
  }
  const OneCall alone = one_call(problem, options);
  // A query is in one piece of a block at most. Query heads that share K and V have gradients of
  // their own, each rounded, before cuDNN adds them up.
  const std::int64_t heads = problem.shape.q_heads / problem.shape.kv_heads;
  const std::int64_t of_keys = alone.backward ? 0 : mask_facts(problem, options).most_of_a_key;
  return cudnn::cudnn_profile(problem.dtype,
                              {.blocks = blocks,
                               .merges = alone.forward ? 0 : options.ranks,
                               .query_gradient_stores = alone.backward ? 0 : options.ranks,
                               .key_gradient_stores = of_keys + (heads > 1 ? 1 : 0),
                               .key_gradient_heads = heads});
}

}  // namespace ringlab::ring
