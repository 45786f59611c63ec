// Closed forms of what a rank sends and holds; the measured figures equal them as integers.
//
// A token's K and V row take batch · kv_heads · (head_dim + v_dim) elements of the problem's dtype,
// on the wire as in memory. c_r is the number of keys of rank r's chunk.
#pragma once

#include "stages/common/stage.h"

namespace ringlab::stages {

/// Bytes of K and V for one token, all heads and batch entries.
std::int64_t kv_bytes_per_token(const Problem& problem);

/// Everybody sends its chunk to everybody: sent (P-1) · c_r tokens, held N tokens.
StatedCosts gather_costs(const Problem& problem, const RunOptions& options, int rank);

/// Neighbour to neighbour: P-1 hops. A rank sends every chunk but its receiver's own; it holds two
/// slots, each as large as the largest chunk (one slot when P = 1).
StatedCosts ring_costs(const Problem& problem, const RunOptions& options, int rank);

/// ring_costs() with the positions of each chunk as a third message: 24 bytes per arithmetic run.
StatedCosts ring_with_positions_costs(const Problem& problem, const RunOptions& options, int rank);

/// Prefetching into S = min(options.slots, P-1) slots beside the own chunk, which stays where it
/// is: held c_r + S · largest chunk. Sent as by a ring; with one slot every rank sends its own
/// chunk to everybody instead, (P-1) · c_r tokens.
StatedCosts overlapped_ring_costs(const Problem& problem, const RunOptions& options, int rank);

/// overlapped_ring_costs() with positions.
StatedCosts overlapped_ring_with_positions_costs(const Problem& problem, const RunOptions& options,
                                                 int rank);

/// Two half rings, P/2 exchanges along the direction and (P-1)/2 against it at the same time. Sent:
/// on each side the chunks of the ranks behind, the own one first. Held beside the own chunk: two
/// slots on each side, or as many as it has exchanges.
StatedCosts bidirectional_costs(const Problem& problem, const RunOptions& options, int rank);

/// Rings inside nodes of options.node_ranks ranks. Every rank sends its own chunk to each other node
/// once: these messages leave the node, and no others do. Inside, it passes on every chunk but those
/// that enter the node at its receiver. Held: the own chunk and two slots.
StatedCosts hierarchical_costs(const Problem& problem, const RunOptions& options, int rank);

/// Heads dealt to the ranks. Sent: the own tokens of other ranks' heads, q, k and v, and on the way
/// back out and lse of the own heads for everybody's queries. Held: all tokens of the own K/V heads.
StatedCosts heads_costs(const Problem& problem, const RunOptions& options, int rank);

/// Chunks go straight to the ranks that see some of them. Sent: the own chunk to each of those.
/// Exchanges: hops at which a rank takes or gives one. Held: the own chunk and one slot.
StatedCosts needed_chunks_costs(const Problem& problem, const RunOptions& options, int rank);

/// A ring of packed chunks: a byte for each number of K and V, and 2 for each row of either. Held:
/// the own chunk, one that is unpacked, two that are packed.
StatedCosts compressed_wire_costs(const Problem& problem, const RunOptions& options, int rank);

/// The own queries to all other ranks, and back a running state (row_max, row_sum, acc) for each of
/// theirs; nothing is sent where there is none. Held: the own chunk.
StatedCosts decode_costs(const Problem& problem, const RunOptions& options, int rank);

}  // namespace ringlab::stages
