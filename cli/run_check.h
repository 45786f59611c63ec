// --check: a result next to the fp64 reference.
#pragma once

#include "optimized/ring/engine.h"
#include "reference/core/numerics.h"
#include "reference/core/report.h"
#include "reference/core/run.h"

namespace ringlab::cli {

/// o and lse, and with input.dout dq, dk and dv.
Report check_result(const AttentionInput& input, const NumericsProfile& profile,
                    const RunResult& got);

/// The same for the rows of one rank out of the whole `input`. The reference of o and lse is
/// computed for these rows only, that of the gradients as a whole.
Report check_shard(const AttentionInput& input, const RunOptions& options, int rank,
                   const ring::ShardResult& got);

}  // namespace ringlab::cli
