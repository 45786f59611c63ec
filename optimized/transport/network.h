// What an in-process network offers its ranks, and the threads the ranks run in.
#pragma once

#include <cstddef>
#include <exception>
#include <span>

#include "optimized/transport/in_process.h"

namespace ringlab::in_process {

/// Serves all ranks; each call comes from the thread of the rank it names.
class Network {
 public:
  virtual ~Network() = default;
  virtual int ranks() const = 0;

  /// First and last thing a rank's thread does. `thrown` is what its body threw, or null.
  virtual void enter(int rank) = 0;
  virtual void leave(int rank, const std::exception_ptr& thrown) = 0;

  virtual Request post_send(int rank, int to, int tag, std::span<const std::byte> bytes) = 0;
  virtual Request post_receive(int rank, int from, int tag, std::span<std::byte> buffer) = 0;
  virtual void wait(int rank, Request request) = 0;
  virtual const Traffic& traffic(int rank) const = 0;
};

/// Runs `body` in one thread per rank and joins them all. `start` is called once all threads exist;
/// environment error when they cannot all be made. Failures of the bodies stay with the network.
void run_ranks(Network& network, const RankBody& body, const std::function<void()>& start);
/// What the ranks have moved, when all have ended.
NetworkSummary summarize(const Network& network);

}  // namespace ringlab::in_process
