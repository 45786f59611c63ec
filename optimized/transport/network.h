// The services of an in-process network to its ranks, and how it runs them.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>

#include "optimized/transport/in_process.h"

namespace ringlab::in_process {

/// Serves all ranks; each call comes from the rank it names.
class Network {
 public:
  virtual ~Network() = default;
  virtual int ranks() const = 0;

  /// The last thing a rank does. `thrown` is what its body threw, or null.
  virtual void leave(int rank, const std::exception_ptr& thrown) = 0;

  virtual Request post_send(int rank, int to, int tag, std::span<const std::byte> bytes) = 0;
  virtual Request post_receive(int rank, int from, int tag, std::span<std::byte> buffer) = 0;
  virtual void wait(int rank, Request request) = 0;
  virtual const Traffic& traffic(int rank) const = 0;
};

/// Runs a rank from its start to leave(); never throws: a failure of the body stays with the
/// network.
void run_rank(Network& network, int rank, const RankBody& body);
/// "expected to start 5 threads, found out of memory"; `what` is what a rank runs in.
[[noreturn]] void throw_cannot_start(const Network& network, const std::string& what,
                                     const std::exception& reason);
/// The bytes and messages that the ranks have moved, when all have ended.
NetworkSummary summarize(const Network& network);

}  // namespace ringlab::in_process
