#include "optimized/transport/run_network.h"

#include "reference/core/error.h"

namespace ringlab {

NetworkSummary run_network(const RunOptions& options, const RankBody& body) {
  const NetworkOptions network{.timeout_s = options.timeout_s, .rendezvous = options.rendezvous};
  switch (options.transport) {
    case TransportKind::threads:
      return run_threads(options.ranks, network, body);
    case TransportKind::simulated:
      return run_simulated(options.ranks, options.delay_seed, network, body);
    case TransportKind::mpi:
      break;
  }
  throw_usage_error({.where = "transport",
                     .expected = "threads or simulated, for ranks inside one process",
                     .actual = "one for ranks that are processes",
                     .hint = "docs/cluster.md shows how those are started"});
}

}  // namespace ringlab
