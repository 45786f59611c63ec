// `ringlab bench gpu --overlap`: what a kernel and the copies of a hop cost each other.
#pragma once

#include "cli/bench/bench_record.h"
#include "cli/bench/gpu/gpu_families.h"
#include "cli/bench/measure/families.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// Measures with the rounds and sizes of `plan` and prints a table. "overlaps" of the record grow by
/// one row after another.
void bench_overlap(const bench::GpuBench& bench, const bench::Plan& plan, BenchRecord& record,
                   Output& output);

}  // namespace ringlab::cli
