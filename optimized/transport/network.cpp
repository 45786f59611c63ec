#include "optimized/transport/network.h"

#include <new>
#include <string>

#include "reference/core/machine/machine_error.h"

namespace ringlab::in_process {
namespace {

class RankCommunicator final : public Communicator {
 public:
  RankCommunicator(Network& network, int rank) : network_(network), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return network_.ranks(); }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    return network_.post_send(rank_, to, tag, bytes);
  }
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    return network_.post_receive(rank_, from, tag, buffer);
  }
  void wait(Request request) override { network_.wait(rank_, request); }
  const Traffic& traffic() const override { return network_.traffic(rank_); }

 private:
  Network& network_;
  int rank_;
};

std::string reason_of(const std::exception& error) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return memory ? "out of memory" : error.what();
}

}  // namespace

void run_rank(Network& network, int rank, const RankBody& body) {
  std::exception_ptr thrown;
  try {
    RankCommunicator communicator(network, rank);
    body(communicator);
  } catch (...) {
    thrown = std::current_exception();
  }
  network.leave(rank, thrown);
}

void throw_cannot_start(const Network& network, const std::string& what,
                        const std::exception& reason) {
  throw MachineError({.where = "network",
                      .expected = "to start " + std::to_string(network.ranks()) + " " + what,
                      .actual = reason_of(reason),
                      .hint = "Use fewer ranks, or lift the limits of this process (ulimit -a)"});
}

NetworkSummary summarize(const Network& network) {
  NetworkSummary summary;
  for (int rank = 0; rank < network.ranks(); ++rank) {
    summary.traffic.push_back(network.traffic(rank));
    summary.leftover_messages +=
        summary.traffic.back().sent_messages - summary.traffic.back().received_messages;
  }
  return summary;
}

}  // namespace ringlab::in_process
