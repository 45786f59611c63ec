// `ringlab bench cpu --widths`: the kernels at every kind of head_dim.
#pragma once

#include "cli/bench/families.h"
#include "cli/output.h"

namespace ringlab::cli {

/// Measures with the rounds and sizes of `plan`, prints a table and finishes the document.
void bench_widths(const bench::Plan& plan, Json configuration, Output& output);

}  // namespace ringlab::cli
