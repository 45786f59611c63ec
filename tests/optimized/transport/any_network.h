// The networks that must keep the contract of Communicator, as test parameters.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "optimized/transport/in_process.h"
#include "reference/core/error.h"

namespace ringlab {

struct AnyNetwork {
  std::string name;
  bool simulated = false;
  bool rendezvous = false;
  std::uint64_t seed = 0;

  /// Runs ranks that are processes of their own; in-process ones unless set.
  std::function<NetworkSummary(int ranks, const RankBody&, double timeout_s)> run_elsewhere = {};

  NetworkSummary run(int ranks, const RankBody& body, double timeout_s = 30) const {
    if (run_elsewhere) return run_elsewhere(ranks, body, timeout_s);
    const NetworkOptions options{.timeout_s = timeout_s, .rendezvous = rendezvous};
    return simulated ? run_simulated(ranks, seed, options, body)
                     : run_threads(ranks, options, body);
  }

  /// The error the run ends with; fails the test when it ends well.
  Error error_of(int ranks, const RankBody& body, double timeout_s = 30) const {
    try {
      run(ranks, body, timeout_s);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "the run ended without an error";
    return Error(ErrorKind::usage, {});
  }
};

inline void PrintTo(const AnyNetwork& network, std::ostream* out) { *out << network.name; }

/// What the program under test has: the in-process networks, or MPI.
std::vector<AnyNetwork> every_network();

inline std::string network_name(const testing::TestParamInfo<AnyNetwork>& info) {
  return info.param.name;
}

inline void send_ints(Communicator& network, int to, int tag, const std::vector<int>& values) {
  network.wait(network.post_send(to, tag, bytes_of(values.data(), std::ssize(values))));
}

inline std::vector<int> receive_ints(Communicator& network, int from, int tag, int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  network.wait(network.post_receive(from, tag, writable_bytes_of(values.data(), count)));
  return values;
}

}  // namespace ringlab
