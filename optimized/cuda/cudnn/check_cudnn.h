// Errors of cuDNN and its frontend become ringlab::Error.
#pragma once

#include <cudnn_frontend.h>

#include <string>

#include "optimized/cuda/cudnn/sdpa_runner.h"
#include "reference/core/machine/machine_error.h"

namespace ringlab::cudnn {

/// Checks a step in making a plan or running it, for the graph named `where`: a Refusal where cuDNN
/// has no kernel for the graph, a MachineError for all other errors.
inline void check_cudnn(const cudnn_frontend::error_t& said, const char* step,
                        const std::string& where) {
  using Code = cudnn_frontend::error_code_t;
  if (said.is_good()) return;
  const bool refused = said.code == Code::GRAPH_NOT_SUPPORTED ||
                       said.code == Code::HEURISTIC_QUERY_FAILED ||
                       said.code == Code::GRAPH_EXECUTION_PLAN_CREATION_FAILED;
  // scripts/gpu_checks tells a missing kernel from a mistake by these words.
  const ErrorParts parts{.where = (refused ? "cuDNN has no kernel for " : "") + where + ", " + step,
                         .expected = "success",
                         .actual = said.err_msg,
                         .hint = "--device cuda with another subject has kernels of its own"};
  if (refused) throw Refusal(parts);
  throw MachineError(parts);
}

inline void check_cudnn(cudnnStatus_t status, const char* call, const std::string& where) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw MachineError({.where = where + ", " + call,
                      .expected = "success",
                      .actual = cudnn_frontend::detail::get_error_string(status)});
}

}  // namespace ringlab::cudnn
