// Runs ranks in this process, on the transport that the options ask for.
#pragma once

#include "optimized/transport/in_process.h"
#include "reference/core/run.h"

namespace ringlab {

/// Runs options.ranks ranks as threads or simulated. Usage error for a transport whose ranks are
/// processes of their own.
NetworkSummary run_network(const RunOptions& options, const RankBody& body);

}  // namespace ringlab
