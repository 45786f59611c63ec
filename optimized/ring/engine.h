// The ring engine: executes a schedule with a block kernel over a transport, forward and backward.
//
// The work of a rank on one screen: optimized/ring/host/execute.h. The schedule decides which
// chunks travel where (reference/core/schedule/schedule.h), kernels compute blocks (optimized/cpu,
// optimized/cuda), and the transport moves bytes (optimized/transport).
//
// There is one door, Engine::run(problem, options, tensors, place). The tensors may be
//
// - the ranks' rows, in their own types (ends.h): attention on one's own buffers, where nobody
//   holds the whole of any tensor;
// - whole tensors, as doubles: each rank takes its rows of them (whole_tensors.h);
// - one rank's rows, as doubles (wide_ends.h).
//
// and the place InProcess or OneRank (place.h), or OnDevices or OverNccl (device_engine.h).
#pragma once

#include <utility>

#include "optimized/ring/ends.h"
#include "optimized/ring/engine_parts.h"
#include "optimized/ring/place.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// Exact attention on options.ranks ranks, with gradients when dout is given. On processors the
/// same bits for any transport, number of slots, delay and integrity; the bits depend on ranks,
/// layout and the order of visits (schedule kind, direction, node_ranks). f32 state (f64 for f64)
/// is carried through all hops, so the error does not grow with the ranks.
///
/// Peak memory of a rank: q, k, v, out, lse of its own rows + the running state (v_dim + 2 per row
/// and head) + slots · (K + V of the largest chunk it visits); see closed_forms.h, docs/cluster.md.
///
/// Errors: usage for options that contradict each other, for Ends of another type than
/// problem.dtype, and for runs that ranks of the place cannot do; input for tensors that do not fit
/// the problem; environment (RankError) when a rank fails; outputs are lost then, never partial.
/// Exhausted memory is an environment error that names the rank, if a rank ran out of it;
/// std::bad_alloc only when there is no memory left for that error either.
class Engine {
 public:
  Engine() = default;
  /// `parts` exchanges parts of ranks on processors, or listens to them.
  explicit Engine(EngineParts parts) : parts_(std::move(parts)) {}

  /// Runs on the ranks' rows: double, float, Half or BFloat16.
  template <class Element>
  RunSummary run(const Problem& problem, const RunOptions& options, const Ends<Element>& ends,
                 const Place& place = InProcess()) const;
  /// Runs on whole tensors and returns whole results; values are rounded to the problem's dtype.
  RunResult run(const AttentionInput& input, const RunOptions& options,
                const Place& place = InProcess()) const;
  /// Runs on the rows of the one rank that runs here, whose values are representable in
  /// problem.dtype; returns the results of its rows.
  RunResult run(const Problem& problem, const RunOptions& options, const RankRows<double>& rows,
                const Place& place) const;

 private:
  EngineParts parts_;
};

}  // namespace ringlab::ring
