// `ringlab bench gpu --overlap`: what a kernel and the copies of a hop cost each other.
#pragma once

#include "cli/bench/families.h"
#include "cli/bench/gpu_families.h"
#include "cli/bench_record.h"
#include "cli/output.h"

namespace ringlab::cli {

/// Measures with the rounds and sizes of `plan` and prints a table. "overlaps" of the record grow by
/// one row after another.
void bench_overlap(const bench::GpuBench& bench, const bench::Plan& plan, BenchRecord& record,
                   Output& output);

}  // namespace ringlab::cli
