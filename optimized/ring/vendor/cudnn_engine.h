// cuDNN's attention as the block kernel of the ring engine (OnDevices, OverNccl): checks and
// accuracy, in every build, with or without CUDA and cuDNN.
#pragma once

#include <string>

#include "reference/core/error.h"
#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// Empty when cuDNN may be asked for this run, else why not, as the end of a sentence: types other
/// than f16 and bf16, score modifiers, bit matrices, lossy wires, capture as a graph, shapes and
/// scales that its attention lacks, masks of too many pieces, gradients of one query and the only
/// key. Known without a device.
std::string why_not_on_cudnn(const Problem& problem, const RunOptions& options, Pass last_pass);

/// The usage error with the reason that why_not_on_cudnn() gives.
class NotOnCudnn : public Error {
 public:
  explicit NotOnCudnn(std::string reason);
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

/// NotOnCudnn unless why_not_on_cudnn() is empty.
void check_on_cudnn(const Problem& problem, const RunOptions& options, Pass last_pass);

/// True when this build has CUDA and the parts of cuDNN that it needs.
bool cudnn_available();

/// Environment error that says what is missing: CUDA or cuDNN in this build, a device, cuDNN on
/// this machine.
void require_cudnn();

/// The accuracy that results of cuDNN must have: cudnn_profile().
NumericsProfile cudnn_engine_profile(const Problem& problem, const RunOptions& options);

}  // namespace ringlab::ring
