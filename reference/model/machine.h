// A machine of ranks, as far as times of rings depend on it.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::model {

/// A message of n bytes that has its way to itself has left after n / bytes_per_s, and is there
/// latency_s later. An infinite speed is one.
struct LinkSpeed {
  double bytes_per_s = 0;
  double latency_s = 0;
};

/// switched: all messages of a rank leave by one way out and come by one way in (NVSwitch, a
/// network card). direct: every pair of ranks has ways of its own, one for each direction.
/// shared: as direct, but both directions of a pair are one way.
enum class Wiring { switched, direct, shared };
std::string_view wiring_name(Wiring wiring);

/// Every rank is a device of its own, as fast as the others.
struct Machine {
  std::string name = {};
  std::string source = {};    ///< where the figures come from
  double forward_flops = 0;   ///< per second, of attention's forward pass on one device
  double backward_flops = 0;  ///< of its backward pass
  double memory_bytes = std::numeric_limits<double>::infinity();  ///< of a device
  double memory_bytes_per_s = 0;                                  ///< of sums of gradients
  double block_s = 0;      ///< that a block takes before it computes: launches
  LinkSpeed inside = {};   ///< between ranks of a node
  LinkSpeed outside = {};  ///< between nodes; by other ways than inside
  int node_ranks = 8;
  Wiring wiring = Wiring::switched;  ///< inside; between nodes it is switched

  double flops(Pass pass) const { return pass == Pass::forward ? forward_flops : backward_flops; }
  const LinkSpeed& between(int rank, int peer) const {
    return rank / node_ranks == peer / node_ranks ? inside : outside;
  }
};

/// Input error, with the name of the figure, unless speeds are positive, times not negative and
/// finite, and nodes have a rank.
void check_machine(const Machine& machine);

/// Machines that are named: published figures, bf16 at 128 channels.
const std::vector<Machine>& known_machines();
/// Usage error that lists the names.
const Machine& find_machine(std::string_view name);

}  // namespace ringlab::model
