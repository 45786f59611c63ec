// Ranks under a seeded scheduler: one runs at a time, and time is a count of ticks.
//
// The network is as unkind as an asynchronous one may be. A send buffer is read when the message
// arrives, not when it is posted; a receive buffer holds poison from posting until arrival, and is
// written at arrival, whether or not its rank is waiting. A schedule that reuses either too early
// computes with wrong bytes here, on most seeds.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "optimized/fibres/fibre.h"
#include "optimized/transport/failure.h"
#include "optimized/transport/message_table.h"
#include "optimized/transport/network.h"

namespace ringlab::in_process {

/// The filler of a posted receive buffer: NaN in every floating-point format.
inline constexpr std::byte kPoison{0xff};

/// Code of all ranks on one thread, each in a fibre: one goes on until it hands over to another.
class Turns {
 public:
  /// Names who goes on when the rank that runs stands still or ends; nobody where it is below 0.
  void give_to(int rank) { holder_ = rank; }
  /// Called by the rank that runs: returns when it is given the turn again.
  void stand_still(int rank);
  /// Runs `body` for every rank, beginning with who has the turn; returns when nobody has it.
  void run(int ranks, const std::function<void(int)>& body);

 private:
  std::deque<Fibre> fibres_;
  int holder_ = -1;
};

class SimulatedNetwork final : public Network {
 public:
  SimulatedNetwork(int ranks, std::uint64_t seed, bool rendezvous);

  int ranks() const override { return table_.ranks(); }
  void leave(int rank, const std::exception_ptr& thrown) override;
  Request post_send(int rank, int to, int tag, std::span<const std::byte> bytes) override;
  Request post_receive(int rank, int from, int tag, std::span<std::byte> buffer) override;
  void wait(int rank, Request request) override;
  const Traffic& traffic(int rank) const override { return table_.traffic(rank); }

  /// Runs all ranks to their ends.
  void run(const RankBody& body);
  std::int64_t virtual_time() const { return end_time_; }
  void rethrow_failure() const;

 private:
  /// An event: a rank goes on, or (with a message) the message arrives.
  struct NetworkEvent {
    std::int64_t time = 0;
    std::uint64_t order = 0;  // random, so that simultaneous events come in any order
    std::int64_t number = 0;
    int rank = -1;
    MessagePtr message;
    bool operator>(const NetworkEvent& other) const {
      return std::tie(time, order, number) > std::tie(other.time, other.order, other.number);
    }
  };

  void schedule_rank(int rank);
  void schedule_arrival(const MessagePtr& message);
  void push(NetworkEvent event);
  std::int64_t random_delay();
  /// Handles events until one lets a rank go on; -1 when all ranks have ended.
  int next_rank();
  void arrive(PairedMessage& message);
  void release_if_complete(int rank);
  bool complete(const HalfMessage& operation) const;
  void fail(int rank, const Error& error);
  /// Records what the body of `rank` threw; needs no memory when there is none.
  void fail_thrown(int rank, const std::exception_ptr& thrown) noexcept;
  /// Lets every rank but `rank` find out that the run has failed.
  void release_survivors(int rank) noexcept;
  void throw_if_failed(int rank, const std::string& doing) const;

  const bool rendezvous_;
  Turns turns_;
  MessageTable table_;
  FirstFailure failure_;
  std::mt19937_64 random_;
  std::vector<NetworkEvent>
      events_;  // a heap, the earliest first; there is room for one of each rank
  std::vector<std::optional<HalfMessage>> waiting_;  // per rank, while it has no event of its own
  std::int64_t now_ = 0;
  std::int64_t end_time_ = 0;
  std::int64_t pushed_ = 0;
  int running_ = 0;  // ranks that have not ended
};

}  // namespace ringlab::in_process
