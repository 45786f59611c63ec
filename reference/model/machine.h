// A machine of ranks, as far as times of rings depend on it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/problem.h"
#include "reference/core/schedule/schedule.h"
#include "reference/model/kernel_speeds.h"

namespace ringlab::model {

/// Units of figures that people read.
inline constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6;

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

/// Figures of real runs, measured or published, where an ideal machine loses nothing.
struct Expected {
  std::vector<KernelSpeed> attention = {};  ///< by mask and length; none: as fast as ideally
  /// Bytes of memory that each number of an output, or of dQ, costs where what a block adds is merged
  /// by kernels of their own, after every block but a rank's first; 0 for kernels that go on from a
  /// running state.
  double merge_bytes = 0;
  double link_share = 1;      ///< of the speed of links
  double product_share = 1;   ///< of the speed of products
  double transfer_share = 0;  ///< see Machine
};

/// Every rank is a device of its own, as fast as the others.
struct Machine {
  std::string name = {};
  std::string source = {};                  ///< where the figures come from
  std::vector<KernelSpeed> attention = {};  ///< by type and channels: what suited_to() chooses from
  double forward_flops = 0;   ///< per second, of attention's forward pass on one device
  double backward_flops = 0;  ///< of its backward pass
  double product_flops = 0;   ///< of products of large matrices of bf16; 0: not known
  double memory_bytes = std::numeric_limits<double>::infinity();  ///< of a device
  double memory_bytes_per_s = 0;                                  ///< of sums of gradients
  double block_s = 0;      ///< that a block takes before it computes: launches
  LinkSpeed inside = {};   ///< between ranks of a node
  LinkSpeed outside = {};  ///< between nodes; by other ways than inside
  int node_ranks = 8;
  Wiring wiring = Wiring::switched;       ///< inside; between nodes it is switched
  std::optional<Expected> expected = {};  ///< what as_expected() makes of it
  BlockSpeeds blocks = {};                ///< where they differ from flops()
  double merge_bytes = 0;                 ///< see Expected
  /// The share of a device's computing that is taken while it sends or receives, 0 to 1.
  double transfer_share = 0;

  /// Operations a second in products with learned matrices; attention's where not known.
  double products_per_s() const { return product_flops > 0 ? product_flops : forward_flops; }
  double flops(Pass pass) const { return pass == Pass::forward ? forward_flops : backward_flops; }
  /// Operations a second in a block of so many queries and keys; `cut`: the mask hides a part of it.
  double flops(Pass pass, double tokens, bool cut) const {
    return blocks.empty() ? flops(pass) : blocks.flops(pass, tokens, cut);
  }
  const LinkSpeed& between(int rank, int peer) const {
    return rank / node_ranks == peer / node_ranks ? inside : outside;
  }
};

/// Input error, with the name of the figure, unless speeds are positive, times not negative and
/// finite, and nodes have a rank.
void check_machine(const Machine& machine);

/// The machine as fast as it is for numbers of this type and so many channels: between those that
/// are known in proportion, beyond them as the nearest. Usage error for a type that it has no speed
/// for, where it has any; f16 counts as bf16.
Machine suited_to(const Machine& machine, const Problem& problem);

/// Makes all links so many times as fast.
void scale_links(Machine& machine, double times);

/// The suited machine with what is expected of real runs in place of the ideal; nothing where that
/// is not known.
std::optional<Machine> as_expected(const Machine& suited, const Problem& problem);

/// Machines that are named, one for each file of reference/model/machines.
const std::vector<Machine>& known_machines();
/// Usage error that lists the names.
const Machine& find_machine(std::string_view name);

}  // namespace ringlab::model
