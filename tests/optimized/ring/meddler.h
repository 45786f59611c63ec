// A communicator between the engine and its network that changes what one rank sends.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "optimized/ring/engine.h"

namespace ringlab::ring {

using Bytes = std::vector<std::byte>;

/// Given everything that the rank wanted to send so far, this message last: what to send instead.
using Meddling = std::function<Bytes(const std::vector<Bytes>& wanted)>;

class Meddler final : public Communicator {
 public:
  Meddler(Communicator& below, Meddling meddling) : below_(below), meddling_(std::move(meddling)) {}
  int rank() const override { return below_.rank(); }
  int ranks() const override { return below_.ranks(); }
  const Traffic& traffic() const override { return below_.traffic(); }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    wanted_.emplace_back(bytes.begin(), bytes.end());
    return below_.post_send(to, tag, sent_.emplace_back(meddling_(wanted_)));
  }
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    return below_.post_receive(from, tag, buffer);
  }
  void wait(Request request) override { below_.wait(request); }

 private:
  Communicator& below_;
  const Meddling meddling_;
  std::vector<Bytes> wanted_;
  std::list<Bytes> sent_;  // each lives as long as its send may
};

/// The engine with `meddling` between `rank` and the network.
inline EngineParts meddled(int rank, Meddling meddling) {
  EngineParts parts;
  parts.wrap =
      [rank, meddling = std::move(meddling)](Communicator& below) -> std::unique_ptr<Communicator> {
    if (below.rank() != rank) return nullptr;
    return std::make_unique<Meddler>(below, meddling);
  };
  return parts;
}

}  // namespace ringlab::ring
