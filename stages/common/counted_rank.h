// A rank's end of the network that counts what no network counts: exchanges, and what leaves a node.
#pragma once

#include <algorithm>
#include <cstdint>

#include "optimized/transport/communicator.h"

namespace ringlab::stages {

struct MessageCounts {
  std::int64_t exchanges = 0;      ///< waits that follow a post: each begins to wait for a round
  std::int64_t node_messages = 0;  ///< sent to ranks of other nodes
  std::int64_t posted_receives = 0;
};

/// Passes everything on to `network`, and counts in `counts`; both must outlive it.
class CountedRank : public Communicator {
 public:
  CountedRank(Communicator& network, int node_ranks, MessageCounts& counts)
      : network_(network), node_ranks_(std::max(node_ranks, 1)), counts_(counts) {}

  int rank() const override { return network_.rank(); }
  int ranks() const override { return network_.ranks(); }
  const Traffic& traffic() const override { return network_.traffic(); }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    if (to / node_ranks_ != rank() / node_ranks_) ++counts_.node_messages;
    has_posted_ = true;
    return network_.post_send(to, tag, bytes);
  }
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    has_posted_ = true;
    ++counts_.posted_receives;
    return network_.post_receive(from, tag, buffer);
  }
  void wait(Request request) override {
    counts_.exchanges += has_posted_;
    has_posted_ = false;
    network_.wait(request);
  }
  void let_go(const char* why) noexcept override { network_.let_go(why); }

 private:
  Communicator& network_;
  int node_ranks_;
  MessageCounts& counts_;
  bool has_posted_ = false;
};

}  // namespace ringlab::stages
