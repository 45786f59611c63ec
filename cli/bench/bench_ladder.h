// `ringlab bench gpu --ladder`: what each idea of the Hopper kernel is worth.
#pragma once

#include "cli/bench/bench_record.h"
#include "cli/bench/gpu/gpu_families.h"
#include "cli/bench/measure/families.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// Measures with the rounds and sizes of `plan` and prints a table for each case. "ladders" of the
/// record grow by one after another.
void bench_ladder(const bench::GpuBench& bench, const bench::Plan& plan, BenchRecord& record,
                  Output& output);

}  // namespace ringlab::cli
