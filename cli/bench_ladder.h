// `ringlab bench gpu --ladder`: what each idea of the Hopper kernel is worth.
#pragma once

#include "cli/bench/families.h"
#include "cli/bench/gpu_families.h"
#include "cli/output.h"

namespace ringlab::cli {

/// Measures with the rounds and sizes of `plan` and prints a table for each case. The ladders for
/// the document.
Json bench_ladder(const bench::GpuBench& bench, const bench::Plan& plan, Output& output);

}  // namespace ringlab::cli
