// Time that a rank stands still and waits for others, apart from the time of its own steps.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/run.h"

namespace ringlab::ring {

/// Adds up the nanoseconds that a rank stood still in waits, and for receives by cause and sender.
class Waits {
 public:
  explicit Waits(int ranks) : links_(static_cast<std::size_t>(ranks)) {}

  void add_send(std::int64_t nanoseconds) { stood_ns_ += nanoseconds; }

  /// A wait for a message. The sender posts the header and right behind it the tensors: until the
  /// header comes the sender is late, from then on the link is slow, or the process that serves it.
  struct Receive {
    int from = 0;
    std::int64_t bytes = 0;
    std::int64_t until_header_ns = 0;
    std::int64_t until_end_ns = 0;
  };
  void add_receive(const Receive& receive) {
    Sum& link = links_[static_cast<std::size_t>(receive.from)];
    link.bytes += receive.bytes;
    link.late_ns += receive.until_header_ns;
    link.transfer_ns += receive.until_end_ns;
    ++link.messages;
    stood_ns_ += receive.until_header_ns + receive.until_end_ns;
  }

  std::int64_t stood_ns() const { return stood_ns_; }
  /// One for every rank that sent something.
  std::vector<LinkStats> links() const {
    std::vector<LinkStats> links;
    for (std::size_t from = 0; from < links_.size(); ++from) {
      const Sum& sum = links_[from];
      if (sum.messages == 0) continue;
      links.push_back({.from = static_cast<int>(from),
                       .received_bytes = sum.bytes,
                       .late_s = static_cast<double>(sum.late_ns) * 1e-9,
                       .transfer_s = static_cast<double>(sum.transfer_ns) * 1e-9});
    }
    return links;
  }

 private:
  struct Sum {
    std::int64_t messages = 0, bytes = 0, late_ns = 0, transfer_ns = 0;
  };
  std::vector<Sum> links_;
  std::int64_t stood_ns_ = 0;
};

}  // namespace ringlab::ring
