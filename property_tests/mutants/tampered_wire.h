// A communicator that does something to messages as they leave or arrive.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "optimized/transport/communicator.h"

namespace ringlab::mutants {

using Bytes = std::vector<std::byte>;

/// Changes of messages; both may be empty, and then messages pass unharmed. Called by the rank's
/// own thread.
struct Tampering {
  /// Changes a copy of a message that leaves, not its length.
  std::function<void(Bytes& message, int tag)> leaving = {};
  /// Fills the receiver's buffer from what arrived.
  std::function<void(std::span<std::byte> buffer, const Bytes& arrived, int tag)> arriving = {};
};

inline void deliver(std::span<std::byte> buffer, const Bytes& arrived) {
  if (!arrived.empty()) std::memcpy(buffer.data(), arrived.data(), arrived.size());
}

class TamperedWire : public Communicator {
 public:
  TamperedWire(Communicator& below, Tampering tampering)
      : below_(below), tampering_(std::move(tampering)) {}

  int rank() const override { return below_.rank(); }
  int ranks() const override { return below_.ranks(); }
  const Traffic& traffic() const override { return below_.traffic(); }

  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    auto copy = std::make_unique<Bytes>(bytes.begin(), bytes.end());
    if (tampering_.leaving) tampering_.leaving(*copy, tag);
    sent_.push_back(std::move(copy));
    return below_.post_send(to, tag, *sent_.back());
  }

  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    auto copy = std::make_unique<Bytes>(buffer.size());
    const Request request = below_.post_receive(from, tag, *copy);
    received_[request.id] = {std::move(copy), buffer, tag};
    return request;
  }

  void wait(Request request) override {
    below_.wait(request);
    const auto found = received_.find(request.id);
    if (found == received_.end()) return;
    const Arrival& arrival = found->second;
    if (tampering_.arriving) {
      tampering_.arriving(arrival.buffer, *arrival.copy, arrival.tag);
    } else {
      deliver(arrival.buffer, *arrival.copy);
    }
    received_.erase(found);
  }

 private:
  struct Arrival {
    std::unique_ptr<Bytes> copy;
    std::span<std::byte> buffer;
    int tag = 0;
  };

  Communicator& below_;
  const Tampering tampering_;
  std::vector<std::unique_ptr<Bytes>> sent_;  // alive until all sends are complete
  std::map<std::int64_t, Arrival> received_;
};

/// Replaces each float of a message by change(float).
template <class Change>
void change_floats(std::span<std::byte> message, Change change) {
  for (std::size_t at = 0; at + sizeof(float) <= message.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &message[at], sizeof value);
    value = change(value);
    std::memcpy(&message[at], &value, sizeof value);
  }
}

}  // namespace ringlab::mutants
