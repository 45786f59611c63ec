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

  int rank() const override { return network_->rank(); }
  int ranks() const override { return network_->ranks(); }
  Communicator& network() override { return *network_; }
  void check_others(const std::string& operation) override { network_->check_others(operation); }
  void finish() override;
  void abort(const std::string& why) noexcept override { network_->abort(why); }

 private:
  std::optional<MpiCommunicator> network_;
  bool finished_ = false;
  struct sigaction previous_ {};  // of SIGTERM, which launchers send when another rank has died
};

}  // namespace ringlab::mpi
