// `ringlab bench gpu`: how near the kernels come to what a device can do, and to their peers.
#pragma once

#include "cli/line/arguments.h"

namespace ringlab::cli {

/// Measures the goals of devices, prints tables and writes JSON and a page where asked for. Missing
/// a goal is no failure. Environment error without CUDA or without a device.
int bench_gpu(Arguments& arguments);

}  // namespace ringlab::cli
