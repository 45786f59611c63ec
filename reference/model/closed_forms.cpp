#include "reference/model/closed_forms.h"

#include <algorithm>
#include <limits>

namespace ringlab::model {
namespace {

/// The largest over the smallest of blocks that still count as alike.
constexpr double kMostApart = 1.5;

/// Numbers of a running state besides those of its row of output: row_max and row_sum.
constexpr std::int64_t kStateNumbers = 2;

std::int64_t kv_token_bytes(const Problem& problem) {
  return work_of(problem, Pass::forward).kv_bytes_per_token;
}

/// Bytes of one query token, all heads: q on the way out, its running state on the way home.
std::int64_t query_bytes(const Problem& problem) {
  const Shape& s = problem.shape;
  return s.batch * s.q_heads *
         (s.head_dim * dtype_info(problem.dtype).bytes +
          (s.v_dim + kStateNumbers) * accumulator_bytes(problem.dtype));
}

/// Seconds of a rank's messages, `bytes` to each of its peers, all at once.
double at_once_seconds(double bytes, int peers, Wiring wiring, const LinkSpeed& link) {
  if (peers == 0) return 0;
  const double on_a_way = wiring == Wiring::switched ? peers : wiring == Wiring::shared ? 2 : 1;
  return link.latency_s + on_a_way * bytes / link.bytes_per_s;
}

}  // namespace

double hidden_from_tokens(const Work& work, const Machine& machine, const LinkSpeed& link,
                          double pair_share) {
  const auto bytes = static_cast<double>(work.kv_bytes_per_token + work.sum_bytes_per_token);
  const auto flops = static_cast<double>(work.flops_per_pair);
  return bytes / link.bytes_per_s * machine.flops(work.pass) / (pair_share * flops);
}

std::optional<double> share_of_blocks(const NeedMatrix& need, std::int64_t q_tokens,
                                      std::int64_t kv_tokens) {
  const int ranks = need.ranks();
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int owner = 0; owner < ranks; ++owner) {
      if (rank == owner) continue;
      const auto pairs = static_cast<double>(need.pairs(rank, owner));
      least = std::min(least, pairs);
      most = std::max(most, pairs);
    }
  }
  if (ranks == 1 || least == 0 || most > kMostApart * least) return std::nullopt;
  const double whole = static_cast<double>(q_tokens) * static_cast<double>(kv_tokens);
  return least * ranks * ranks / whole;
}

std::int64_t pass_kv_bytes(const Problem& problem, int ranks) {
  return (ranks - 1) * problem.shape.kv_tokens * kv_token_bytes(problem);
}

std::int64_t pass_q_bytes(const Problem& problem, int ranks) {
  return (ranks - 1) * problem.shape.q_tokens * query_bytes(problem);
}

std::int64_t deal_heads_bytes(const Problem& problem, int ranks) {
  const Shape& s = problem.shape;
  const std::int64_t element = dtype_info(problem.dtype).bytes;
  const std::int64_t kv_heads = std::max<std::int64_t>(s.kv_heads, ranks);
  const std::int64_t query =
      s.q_heads * ((s.head_dim + s.v_dim) * element + accumulator_bytes(problem.dtype));
  const std::int64_t key = kv_heads * (s.head_dim + s.v_dim) * element;
  return s.batch * (ranks - 1) * (s.q_tokens * query + s.kv_tokens * key) / ranks;
}

double pass_q_below(const Problem& problem, std::int64_t cached) {
  const std::int64_t more = query_bytes(problem) - kv_token_bytes(problem);
  return static_cast<double>(cached) * static_cast<double>(kv_token_bytes(problem)) /
         static_cast<double>(more);
}

double exchange_seconds(double bytes, int ranks, const Machine& machine) {
  const int node = std::min(ranks, machine.node_ranks);
  // Ranks of the smallest node, which have most to send to other nodes.
  const int rest = ranks % node == 0 ? node : ranks % node;
  return std::max(at_once_seconds(bytes, node - 1, machine.wiring, machine.inside),
                  at_once_seconds(bytes, ranks - rest, Wiring::switched, machine.outside));
}

}  // namespace ringlab::model
