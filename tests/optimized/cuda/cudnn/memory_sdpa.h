// What stands for cuDNN where there is no device: does what a graph says, by what cuDNN's
// documentation says of graphs, on plain memory.
#pragma once

#include "optimized/cuda/cudnn/sdpa_runner.h"

namespace ringlab::cudnn {

/// Whether query i of a graph sees key j.
bool shows(const SdpaGraph& graph, std::int64_t i, std::int64_t j);
bool shows(const SdpaBackwardGraph& graph, std::int64_t i, std::int64_t j);

/// Asks for a workspace and writes over all of it. A query that sees nothing gets NaN: none may be
/// asked for. Gradients lose what published kernels lose: weights and their gradients are rounded,
/// and so are dk and dv of every query head. std::logic_error for a graph that makes no sense.
SdpaRunner memory_runner();

}  // namespace ringlab::cudnn
