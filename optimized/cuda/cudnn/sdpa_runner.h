// The runner of a graph: cuDNN (sdpa_plans.h), or in tests a stand-in that computes the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "optimized/cuda/cudnn/sdpa_graph.h"
#include "optimized/cuda/stream.h"
#include "reference/core/error.h"

namespace ringlab::cudnn {

/// Device pointers to the first element of each tensor of a graph, aligned to 16 bytes.
struct SdpaPointers {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
  float* lse = nullptr;
  std::byte* workspace = nullptr;
};

/// Device pointers of a backward pass, likewise.
struct SdpaBackwardPointers {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* out = nullptr;
  const void* dout = nullptr;
  const float* lse = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  std::byte* workspace = nullptr;
};

/// All functions use the current device, and throw a Refusal for a graph that cuDNN does not take.
struct SdpaRunner {
  std::function<std::int64_t(const SdpaGraph&)> workspace_bytes;
  /// Runs the graph: only puts work on the stream.
  std::function<void(const SdpaGraph&, const SdpaPointers&, cuda::Stream)> run;
  std::function<std::int64_t(const SdpaBackwardGraph&)> backward_workspace_bytes;
  /// Runs a backward pass, as run() does.
  std::function<void(const SdpaBackwardGraph&, const SdpaBackwardPointers&, cuda::Stream)>
      run_backward;
};

/// cuDNN has no kernel for a graph. Another release may have one.
class Refusal : public Error {
 public:
  explicit Refusal(ErrorParts parts) : Error(ErrorKind::environment, std::move(parts)) {}
};

}  // namespace ringlab::cudnn
