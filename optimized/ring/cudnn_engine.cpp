#include "optimized/ring/cudnn_engine.h"

#include <algorithm>
#include <numbers>

#include "optimized/cuda/cudnn/cudnn_profile.h"
#include "optimized/cuda/cudnn/sdpa_graph.h"
#include "optimized/cuda/visible_keys.h"
#include "optimized/ring/cudnn_run.h"
#include "optimized/ring/padded_channels.h"
#include "optimized/ring/whole_tensors.h"
#include "optimized/ring/wire.h"
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

/// Of the block of `rank`'s queries and `owner`'s keys.
std::vector<cudnn::MaskPiece> pieces_of_block(const Problem& problem, const CudnnLayouts& layouts,
                                              int rank, int owner) {
  return cudnn::cut_mask(cuda::visible_rows(problem.mask, layouts.queries.positions(rank),
                                            layouts.keys.positions(owner)));
}

std::size_t most_pieces(const Problem& problem, const RunOptions& options) {
  const CudnnLayouts layouts(problem, options);
  std::size_t most = 0;
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int owner = 0; owner < options.ranks; ++owner) {
      most = std::max(most, pieces_of_block(problem, layouts, rank, owner).size());
    }
  }
  return most;
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

/// One call whose results are those of the run.
bool is_one_call(const Problem& problem, const RunOptions& options) {
  if (options.ranks > 1 || problem.shape.q_tokens == 0) return false;
  const auto pieces = pieces_of_block(problem, CudnnLayouts(problem, options), 0, 0);
  return pieces.size() == 1 && pieces.front().query_count() == problem.shape.q_tokens;
}

}  // namespace

std::string why_not_on_cudnn(const AttentionInput& input, const RunOptions& options) {
  const Problem& problem = input.problem;
  const Modifiers& modifiers = problem.modifiers;
  if (problem.dtype != DType::f16 && problem.dtype != DType::bf16) {
    return "does not compute in " + std::string(dtype_info(problem.dtype).name);
  }
  if (input.dout) return "gives no gradients";
  if (modifiers.changes_scores() || modifiers.dropout != 0 || !modifiers.sinks.empty()) {
    return "knows no score modifiers";
  }
  if (problem.mask.has_bits()) return "takes no mask of bits";
  if (is_lossy(options.wire, problem.dtype)) return "takes no wire that rounds K and V";
  const std::string reason = shape_reason(problem);
  if (!reason.empty()) return "takes no " + reason;
  const std::size_t pieces = most_pieces(problem, options);
  if (pieces <= cudnn::kMostPieces) return "";
  return "takes no mask of " + std::to_string(pieces) + " pieces, " +
         std::to_string(cudnn::kMostPieces) + " at most";
}

bool cudnn_available() { return is_cudnn_compiled_in(); }

void require_cudnn() { require_cudnn_and_devices(); }

RunResult run_engine_on_cudnn(const AttentionInput& input, const RunOptions& options) {
  const std::string reason = why_not_on_cudnn(input, options);
  if (!reason.empty()) {
    throw_usage_error({.where = "cudnn",
                       .expected = "what cuDNN's attention takes",
                       .actual = "that it " + reason,
                       .hint = "`optimized` has kernels of its own, on devices and the CPU"});
  }
  require_cudnn();
  RunResult result = empty_result(input);
  const auto run = [&]<class Element>(Element) {
    take_summary(run_native_on_cudnn<Element>(
                     with_padded_channels(input.problem), options,
                     padded_ends(input.problem.shape, whole_ends<Element>(input, result))),
                 result);
  };
  input.problem.dtype == DType::f16 ? run(Half{}) : run(BFloat16{});
  return result;
}

NumericsProfile cudnn_engine_profile(const Problem& problem, const RunOptions& options) {
  const CudnnLayouts layouts(problem, options);
  std::int64_t blocks = 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    blocks += (layouts.keys.positions(owner).size() + kFewestKeysAtOnce - 1) / kFewestKeysAtOnce;
  }
  const std::int64_t merges = is_one_call(problem, options) ? 0 : options.ranks;
  return cudnn::cudnn_profile(problem.dtype, blocks, merges);
}

}  // namespace ringlab::ring
