// `ringlab bench gpu --overlap`: what a kernel and the copies of a hop cost each other.
#pragma once

#include "cli/bench/families.h"
#include "cli/bench/gpu_families.h"
#include "cli/output.h"

namespace ringlab::cli {

/// Measures with the rounds and sizes of `plan` and prints a table. The rows for the document.
Json bench_overlap(const bench::GpuBench& bench, const bench::Plan& plan, Output& output);

}  // namespace ringlab::cli
