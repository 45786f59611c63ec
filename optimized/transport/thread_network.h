// Ranks as free-running threads. Every byte is copied by the rank that owns the buffer, inside one
// of its own calls, so that a rank that dies takes no other rank's memory with it. Short messages
// are buffered when they are sent. Long ones are carried in pieces while both ranks wait, so that
// the network holds next to nothing besides the ranks' own buffers.
//
// A wait fails when nobody has sent or received anything for as long as the deadline, unless the
// rank that all wait for is computing: where there are more ranks than processors, steps take long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <vector>

#include "optimized/transport/failure.h"
#include "optimized/transport/message_table.h"
#include "optimized/transport/network.h"
#include "optimized/transport/patience.h"

namespace ringlab::in_process {

class ThreadNetwork final : public Network {
 public:
  ThreadNetwork(int ranks, const NetworkOptions& options);

  int ranks() const override { return table_.ranks(); }
  /// To be called by the thread of a rank, before all else.
  void enter(int rank);
  void leave(int rank, const std::exception_ptr& thrown) override;
  Request post_send(int rank, int to, int tag, std::span<const std::byte> bytes) override;
  Request post_receive(int rank, int from, int tag, std::span<std::byte> buffer) override;
  void wait(int rank, Request request) override;
  const Traffic& traffic(int rank) const override { return table_.traffic(rank); }

  void rethrow_failure() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = Patience::Clock;
  struct WaitState {
    std::condition_variable wake;
    std::optional<HalfMessage> waiting;
    std::vector<HalfMessage> movable;  ///< its operations that had a piece to move when noted
    std::optional<clockid_t> processor_time = {};  ///< of its thread, while it runs
  };

  Lock locked();
  WaitState& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  void block_until_complete(int rank, const HalfMessage& operation, Lock& lock);
  void note_movable(const MessagePtr& message);
  /// Moves a piece of each of this rank's open messages that has one to move. True if one had.
  bool move_pieces(int rank, const HalfMessage& awaited, Lock& lock);
  void read_piece(PairedMessage& message, Lock& lock);
  void write_piece(PairedMessage& message, Lock& lock);
  bool can_move(int rank) const;
  bool waits_for(int rank, const PairedMessage& message) const;
  /// False when there is none: all wait for each other.
  bool wake_who_can_move();
  /// Whom a rank waits for in the end: that one waits for nobody, or is in a circle.
  int awaited_by(int rank) const;
  Patience::Look look_at_awaited(int rank) const;
  void note_progress() { last_progress_ = Clock::now(); }
  Error stuck_error() const;
  [[noreturn]] void fail(int rank, const Error& error);
  void wake_everyone();

  const std::chrono::steady_clock::duration timeout_;
  const double timeout_s_;
  const bool rendezvous_;
  std::mutex mutex_;
  MessageTable table_;  // guarded by mutex_, as are the following
  std::vector<WaitState> states_;
  FirstFailure failure_;
  Clock::time_point last_progress_ = Clock::now();
  int idle_ = 0;  ///< ranks that wait or have ended
};

}  // namespace ringlab::in_process
