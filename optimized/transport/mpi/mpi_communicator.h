// Communicator over MPI: non-blocking point-to-point, waits with a deadline and a suspect.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optimized/transport/communicator.h"
#include "optimized/transport/mpi/mpi_control.h"
#include "optimized/transport/mpi/mpi_peers.h"
#include "optimized/transport/mpi/mpi_session.h"
#include "optimized/transport/mpi/mpi_watch.h"

namespace ringlab::mpi {

/// One rank's end; start_mpi() says how failures are told. A second thread uses MPI as long as it
/// lives: with other calls of MPI beside it, that needs MPI_THREAD_MULTIPLE. Buffers of operations
/// that were never waited for must outlive a healthy communicator, or let_go(); after a failure MPI
/// is left alone.
class MpiCommunicator final : public Communicator {
 public:
  /// Duplicates `comm`, for data and for control; collective.
  MpiCommunicator(MPI_Comm comm, const MpiOptions& options);
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return control_.rank(); }
  int ranks() const override { return control_.ranks(); }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override;
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override;
  void wait(Request request) override;
  void let_go(const char* why) noexcept override;
  const Traffic& traffic() const override { return traffic_; }

  /// Calls of JobSession.
  void check_others(const std::string& operation);
  void finish();
  void abort(const std::string& why) noexcept;
  bool has_failed() const { return failed_; }
  const PeerProcesses& processes() const { return processes_; }

 private:
  struct PostedMessage {
    bool is_send = false;
    int peer = 0;
    int tag = 0;
    std::int64_t bytes = 0;
    std::vector<MPI_Request> pieces = {};
    std::size_t done = 0;  ///< pieces that are complete
    std::int64_t received = 0;
    bool too_long = false;  ///< a piece did not fit
  };
  struct WaitingFor {
    std::string doing;  ///< "receive tag 3 from rank 1"
    int peer = kNobody;
  };

  using Lock = std::unique_lock<std::mutex>;

  static std::string describe(const PostedMessage& posted);
  void check_can_post(Lock& lock, bool is_send, int peer, int tag);
  /// Noted before MPI has its buffers.
  std::pair<const std::int64_t, PostedMessage>& keep(PostedMessage posted);
  /// Lengths of the pieces of a message: the last one is shorter than piece_bytes, so that both
  /// sides see where it ends.
  std::vector<int> piece_lengths(std::int64_t bytes) const;
  bool is_complete(PostedMessage& posted);
  void check_size(Lock& lock, const PostedMessage& posted);
  /// Returns when `done`; throws when the job has failed, as the watch finds out or has heard.
  void block(Lock& lock, const WaitingFor& activity, const std::function<bool()>& done);
  void throw_if_told(Lock& lock, const WaitingFor& activity, Clock::time_point begin);
  /// True when MPI uses no buffer of a posted operation any more.
  bool is_idle();
  /// Tells the others that this rank has failed, and leave_mpi().
  void leave_with(const std::string& why, Lock& lock);
  /// Gives news of the failure time to leave, then never calls MPI again.
  void leave_mpi(Lock& lock);

  MpiOptions options_;
  std::mutex mpi_;  ///< held by whoever calls MPI
  ControlChannel control_;
  PeerProcesses processes_;
  MPI_Comm data_ = MPI_COMM_NULL;
  int largest_tag_ = 0;
  bool failed_ = false;
  std::int64_t next_id_ = 0;
  std::map<std::int64_t, PostedMessage> open_;
  Traffic traffic_;
  std::optional<Watch> watch_;  // last: it uses the others
};

}  // namespace ringlab::mpi
