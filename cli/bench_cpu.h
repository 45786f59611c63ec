// `ringlab bench cpu`: how near the kernels come to what the processor can do.
#pragma once

#include "cli/output.h"

namespace ringlab::cli {

/// Goals as records {id, what, value, at_least, target, met, spread}; prints the table.
Json bench_cpu(int rounds, bool quick, Output& output);

}  // namespace ringlab::cli
