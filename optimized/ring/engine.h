// The ring engine: executes a schedule with a block kernel over a transport, forward and backward.
//
// What it does on one screen: optimized/ring/host/execute.h. Which chunks travel where is decided by the
// schedule (reference/core/schedule/schedule.h), how blocks are computed by the kernels (optimized/cpu), how
// bytes move by the transport (optimized/transport). Here everything is given and returned as
// doubles, whatever is computed in; for one's own buffers and long sequences see native.h.
#pragma once

#include <optional>
#include <vector>

#include "optimized/ring/engine_parts.h"
#include "optimized/transport/communicator.h"
#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab::ring {

/// Exact attention on options.ranks in-process ranks (threads or simulated), with gradients when
/// input.dout is given. The same bits for any transport, number of slots, delay and integrity; the
/// bits depend on ranks, layout and the order of visits (schedule kind, direction, node_ranks).
/// f32 state (f64 for f64) is carried through all hops, so the error does not grow with the ranks.
///
/// Peak memory of a rank: q, k, v, out, lse of its own rows + the running state (v_dim + 2 per row
/// and head) + slots · (K + V of the largest chunk it visits); see engine_costs, docs/cluster.md.
///
/// Errors: usage for options that make no sense together, input for tensors that do not fit the
/// problem, environment (RankError) when a rank fails; outputs are lost then, never partial.
/// Exhausted memory is an environment error that names the rank, if it was a rank's; std::bad_alloc
/// only when there is no memory left for that error either.
RunResult run_engine(const AttentionInput& input, const RunOptions& options);

/// What the engine promises for this problem: one rescale per tile at most, state carried, and for
/// lossy wire formats the rounding of K and V.
NumericsProfile engine_profile(const Problem& problem, const RunOptions& options);

/// Closed forms of what one rank sends, receives and holds; RankStats equal them exactly.
struct EngineCosts {
  std::int64_t sent_bytes = 0;
  std::int64_t sent_messages = 0;
  std::int64_t received_bytes = 0;
  std::int64_t received_messages = 0;
  std::int64_t peak_kv_bytes = 0;  ///< of the own chunk and all slots
  std::int64_t peak_bytes = 0;     ///< state and slots: all that is held besides inputs and outputs
};
EngineCosts engine_costs(const Problem& problem, const RunOptions& options, int rank,
                         Pass last_pass);
/// The same of all ranks, in little more time than of one.
std::vector<EngineCosts> engine_costs(const Problem& problem, const RunOptions& options,
                                      Pass last_pass);
/// The same where need_matrix() of the problem's mask and these layouts is known: it takes most of
/// the time.
std::vector<EngineCosts> engine_costs(const Problem& problem, const RunOptions& options,
                                      const NeedMatrix& need, Pass last_pass);
/// What each rank computes, in matrix products of a (query, key) pair and head: two a pair forward,
/// five backward. EngineParts::work_done counts them.
std::vector<std::int64_t> engine_work(const Problem& problem, const RunOptions& options,
                                      Pass last_pass);

/// One rank's rows, in the order of its layouts: q, dout hold options' q-layout rows of this rank,
/// k and v the kv-layout rows. Values are representable in problem.dtype.
struct ShardInput {
  TensorView<const double> q, k, v;
  std::optional<TensorView<const double>> dout = {};
};
struct ShardResult {
  AttentionOutput output;  ///< this rank's query rows
  std::optional<AttentionGradients> gradients;
  RankStats stats;
  double seconds = 0;
};
/// What run_engine does on each rank; for ranks that are processes of their own. All ranks of
/// `network` must call it with the same problem and options; that they do is agreed on before any
/// data moves.
ShardResult run_engine_rank(const Problem& problem, const RunOptions& options,
                            const ShardInput& shard, Communicator& network);

/// With parts of the engine exchanged, or listened to.
RunResult run_engine_with(const EngineParts& parts, const AttentionInput& input,
                          const RunOptions& options);
ShardResult run_engine_rank_with(const EngineParts& parts, const Problem& problem,
                                 const RunOptions& options, const ShardInput& shard,
                                 Communicator& network);

}  // namespace ringlab::ring
