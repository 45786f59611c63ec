// cuDNN's fused attention, on the current device. In every build with CUDA: where cuDNN's headers
// were missing, all functions say so.
#pragma once

#include <string>

#include "optimized/cuda/cudnn/sdpa_runner.h"

namespace ringlab::cudnn {

/// True in a build with cuDNN's headers.
bool compiled_in();

/// "cuDNN 9.19.0 (/usr/lib/libcudnn.so.9)". Environment error that says what is missing, in this
/// build or on this machine.
std::string require_cudnn();

/// Throws a Refusal where the frontend refuses a graph for devices of this compute capability,
/// before cuDNN is asked. Needs cuDNN and no device.
void check_graph(const SdpaGraph& graph, int compute_capability);
void check_graph(const SdpaBackwardGraph& graph, int compute_capability);

/// Plans are made at the first call for a graph and device, and kept while the program runs.
/// Environment errors name the graph and what cuDNN says.
SdpaRunner cudnn_runner();

}  // namespace ringlab::cudnn
