// PyTorch as a peer: measure/torch_peer.py, on processors and on devices.
#pragma once

#include <string>
#include <string_view>

#include "optimized/bench/measure/goal.h"
#include "optimized/bench/measure/peer.h"

namespace ringlab::bench {

/// The program of the peer, for `python -c`.
std::string_view torch_peer_source();

/// The peer on "cpu" or "cuda", run by this Python.
PeerCommand torch_peer(const std::string& python, const std::string& device);

/// The part of a request that is no case of a goal: `how` is the number of threads on the CPU, one
/// of PyTorch's back ends on a device.
struct TorchWish {
  std::int64_t kv_heads = 1;
  std::string how;
};
/// The line that asks for an attention of `of`: nine words.
std::string torch_request(const GoalCase& of, const TorchWish& wish);

}  // namespace ringlab::bench
