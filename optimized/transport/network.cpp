#include "optimized/transport/network.h"

#include <future>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "reference/core/error.h"

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

void run_rank(Network& network, int rank, const RankBody& body) {
  network.enter(rank);
  std::exception_ptr thrown;
  try {
    RankCommunicator communicator(network, rank);
    body(communicator);
  } catch (...) {
    thrown = std::current_exception();
  }
  network.leave(rank, thrown);
}

std::string reason_of(const std::exception& error) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return memory ? "out of memory" : error.what();
}

}  // namespace

NetworkSummary summarize(const Network& network) {
  NetworkSummary summary;
  for (int rank = 0; rank < network.ranks(); ++rank) {
    summary.traffic.push_back(network.traffic(rank));
    summary.leftover_messages +=
        summary.traffic.back().sent_messages - summary.traffic.back().received_messages;
  }
  return summary;
}

void run_ranks(Network& network, const RankBody& body, const std::function<void()>& start) {
  // No body starts before every thread exists: with too few threads none of them may run.
  std::promise<bool> gate;
  const std::shared_future<bool> opened = gate.get_future().share();
  std::vector<std::thread> threads;
  try {
    for (int rank = 0; rank < network.ranks(); ++rank) {
      threads.emplace_back([&network, &body, opened, rank] {
        if (opened.get()) run_rank(network, rank, body);
      });
    }
  } catch (const std::exception& error) {
    gate.set_value(false);
    for (std::thread& thread : threads) thread.join();
    throw_environment_error({.where = "network",
                             .expected = "to start " + std::to_string(network.ranks()) + " threads",
                             .actual = reason_of(error),
                             .hint = "Use fewer ranks"});
  }
  gate.set_value(true);
  start();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ringlab::in_process
