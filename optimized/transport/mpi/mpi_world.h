// A JobSession on a real MPI.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "optimized/transport/mpi/mpi_communicator.h"
#include "optimized/transport/mpi/mpi_session.h"

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
  void abort(const std::string& why) noexcept override;

 private:
  const MpiOptions options_;
  std::optional<MpiCommunicator> network_;  // until finish()
  int rank_ = 0, ranks_ = 0;
  struct sigaction previous_ {};  // of SIGTERM, which launchers send when another rank has died
};

}  // namespace ringlab::mpi
