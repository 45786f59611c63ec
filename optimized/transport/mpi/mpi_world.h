// A JobSession on a real MPI.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "optimized/transport/mpi/mpi_communicator.h"
#include "optimized/transport/mpi/mpi_launched.h"
#include "optimized/transport/mpi/mpi_peers.h"
#include "optimized/transport/mpi/mpi_session.h"
#include "optimized/transport/mpi/mpi_signals.h"

namespace ringlab::mpi {

/// MPI_Init_thread and MPI_Finalize as a value.
class World final : public JobSession {
 public:
  explicit World(const MpiOptions& options);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  Communicator& network() override { return *network_; }
  void check_others(const std::string& operation) override { network_->check_others(operation); }
  void finish() override;
  void outlast(int peer, const std::string& operation, const std::function<bool()>& done) override;
  void abort(const std::string& why) noexcept override;

 private:
  const MpiOptions options_;
  const Signals signals_;
  LaunchedRanks launched_;
  std::optional<MpiCommunicator> network_;  // until finish()
  int rank_ = 0, ranks_ = 0;
  std::optional<PeerProcesses> processes_;  // from finish() on
};

}  // namespace ringlab::mpi
