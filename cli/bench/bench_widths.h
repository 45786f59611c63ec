// `ringlab bench cpu --widths`: the kernels at every kind of head_dim.
#pragma once

#include "cli/bench/bench_record.h"
#include "cli/bench/measure/families.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// Measures with the rounds and sizes of `plan`, prints a table and finishes the record.
void bench_widths(const bench::Plan& plan, BenchRecord& record, Output& output);

}  // namespace ringlab::cli
