// Figures that need no simulation.
#pragma once

#include <optional>

#include "reference/core/schedule/schedule.h"
#include "reference/model/machine.h"
#include "reference/model/work.h"

namespace ringlab::model {

/// The smallest number of tokens in a chunk from which on a hop takes no longer than the block that
/// hides it, in a ring whose links have this speed: with F operations a second, B bytes a second,
/// e bytes an element, and a share s of a block's pairs allowed,
///   s c² flops_per_pair / F >= c bytes_per_token / B,
/// for a full mask at equal widths c >= (F / B) (kv_heads / q_heads) (e / 2). Sums of gradients go
/// beside K and V. Latencies are left out.
/// `pair_share` is 1 for a full mask, 1/2 for a causal one whose work is spread evenly
/// (share_of_blocks()).
double hidden_from_tokens(const Work& work, const Machine& machine, const LinkSpeed& link,
                          double pair_share);

/// The share of its pairs that each block between two ranks is to compute, by the smallest of them.
/// Nothing where blocks differ much (windows, contiguous causal rings, one rank): no one chunk
/// length hides all hops there.
std::optional<double> share_of_blocks(const NeedMatrix& need, std::int64_t q_tokens,
                                      std::int64_t kv_tokens);

/// Bytes that all ranks together send in a forward pass in which everybody needs every chunk: keys
/// and values of N tokens go round, N (ranks - 1) of them.
std::int64_t pass_kv_bytes(const Problem& problem, int ranks);

/// Bytes of such a pass where keys and values stay: N_q (ranks - 1) queries go out, and as many
/// running states (row_max, row_sum, acc) come home (Yang et al. 2024; stage 21).
std::int64_t pass_q_bytes(const Problem& problem, int ranks);

/// Bytes of such a pass where heads are dealt to ranks by two all-to-alls: q, k and v of all tokens
/// there, out and lse back (Jacobs et al. 2023; stage 18). Ranks divide the tokens and the query
/// heads; a K/V head of several ranks goes to each of them.
std::int64_t deal_heads_bytes(const Problem& problem, int ranks);

/// The number of new tokens behind `cached` ones below which pass_q_bytes() are fewer than
/// pass_kv_bytes(). Of `problem`, types, heads and channels count.
double pass_q_below(const Problem& problem, std::int64_t cached);

/// Seconds until each rank has sent so many bytes to each other one, all at once: in a node and
/// between nodes at the same time, by ways as the machine is wired.
double exchange_seconds(double bytes, int ranks, const Machine& machine);

}  // namespace ringlab::model
