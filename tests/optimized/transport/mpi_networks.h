// Ranks of an MPI job as the networks of the contract tests.
#pragma once

#include <functional>

#include "optimized/transport/mpi/mpi_communicator.h"
#include "tests/optimized/transport/any_network.h"

namespace ringlab {

/// Runs `body` on the first `ranks` processes of the job, each with a communicator of its own; the
/// others wait for them. The summary is the same on every process.
NetworkSummary run_on_job(int ranks, const MpiOptions& options,
                          const std::function<void(mpi::MpiCommunicator&)>& body);

}  // namespace ringlab
