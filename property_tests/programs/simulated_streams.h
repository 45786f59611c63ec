// Devices without devices: a stream program on the CPU, in any order that streams and events allow.
//
// The same kernels, slots and sums as the engine (rank_passes.h), so results have the bits of
// run_native(), or the program is wrong.
#pragma once

#include <cstdint>
#include <functional>

#include "optimized/ring/native.h"
#include "optimized/ring/streams/stream_setting.h"
#include "property_tests/programs/random_order.h"

namespace ringlab::ring {

/// Executes a program on a machine in an order drawn from a seed.
using StreamExecution =
    std::function<void(const StreamProgram& program, std::uint64_t seed, StreamMachine& machine)>;

struct SimulatedStreams {
  CopyBy copy_by = CopyBy::receiver;
  std::uint64_t seed = 0;  ///< of the order
  /// Changes the programs before they are executed; must keep every slot in range.
  StreamEdit edit = {};
  /// In place of execute_in_random_order().
  StreamExecution execute = {};
};

/// One thread; all ranks' rows are held at once. A slot that is being copied into holds NaN, of
/// what is copied one half is read when the copy begins and one when it ends. Of RankStats, what
/// was sent, received and held is filled in; a message is a copy, without a header.
template <class Element>
NativeSummary run_simulated_streams(const Problem& problem, const RunOptions& options,
                                    const NativeEnds<Element>& ends,
                                    const SimulatedStreams& streams = {});

}  // namespace ringlab::ring
