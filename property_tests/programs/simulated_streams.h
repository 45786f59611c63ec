// Devices without devices: a stream program on the CPU, in any order that streams and events allow.
//
// Kernels, slots and sums are the engine's (rank_passes.h), so results have the bits of the
// engine's on processors, or the program is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "optimized/ring/place.h"
#include "optimized/ring/streams/stream_setting.h"
#include "property_tests/programs/random_order.h"

namespace ringlab::ring {

/// Executes a program on a machine in an order drawn from a seed.
using StreamExecution =
    std::function<void(const StreamProgram& program, std::uint64_t seed, StreamMachine& machine)>;

struct SimulatedStreams {
  CopyBy copy_by = CopyBy::receiver;
  std::uint64_t seed = 0;  ///< seed of the order
  /// Changes the programs before they are executed; must keep every slot in range.
  StreamEdit edit = {};
  /// Executes the programs in place of execute_in_random_order().
  StreamExecution execute = {};
};

/// Executes on one thread, with all ranks' rows held at once. A slot that is being copied into
/// holds NaN; one half of a copy is read when it begins and one when it ends. RankStats say what
/// was sent, received and held, and no more; a message is a copy, without a header.
class OnSimulatedStreams final : public Place {
 public:
  explicit OnSimulatedStreams(SimulatedStreams streams = {}) : streams_(std::move(streams)) {}
  void check(const Problem&, const RunOptions&) const override {}
  RunSummary run(const AnyRun& run) const override;

 private:
  const SimulatedStreams streams_;
};

}  // namespace ringlab::ring
