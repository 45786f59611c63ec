// `ringlab bench cpu --widths`: the kernels at every kind of head_dim.
#pragma once

#include "cli/bench/families.h"
#include "cli/bench_record.h"
#include "cli/output.h"

namespace ringlab::cli {

/// Measures with the rounds and sizes of `plan`, prints a table and finishes the record.
void bench_widths(const bench::Plan& plan, BenchRecord& record, Output& output);

}  // namespace ringlab::cli
