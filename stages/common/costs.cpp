#include "stages/common/costs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reference/core/schedule/schedule.h"

namespace ringlab::stages {
namespace {

constexpr std::int64_t kKeysAndValues = 2;  // messages per chunk

Layout kv_layout_of(const Problem& problem, const RunOptions& options) {
  return make_layout(options, problem.shape.kv_tokens, options.kv_layout);
}

/// The rank whose chunk is the only one that `rank` never passes on: its receiver's.
int receiver_of(const RunOptions& options, int rank) {
  const int step = options.direction == RingDirection::next ? 1 : -1;
  return (rank + step + options.ranks) % options.ranks;
}

/// Owners of the chunks that `rank` sends, one entry per hop.
std::vector<int> owners_sent(const RunOptions& options, int rank, std::int64_t slots) {
  if (slots == 1) return std::vector<int>(static_cast<std::size_t>(options.ranks - 1), rank);
  std::vector<int> owners;
  for (int owner = 0; owner < options.ranks; ++owner) {
    if (owner != receiver_of(options, rank)) owners.push_back(owner);
  }
  return owners;
}

std::int64_t slots_used(const RunOptions& options) {
  return std::min(options.slots, options.ranks - 1);
}

}  // namespace

std::int64_t kv_bytes_per_token(const Problem& problem) {
  const Shape& s = problem.shape;
  return s.batch * s.kv_heads * (s.head_dim + s.v_dim) * dtype_info(problem.dtype).bytes;
}

StatedCosts gather_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const std::int64_t token = kv_bytes_per_token(problem);
  const std::int64_t others = options.ranks - 1;
  const std::int64_t heads = problem.shape.batch * problem.shape.kv_heads;  // a message per head
  return {.sent_bytes = others * layout.positions(rank).size() * token,
          .sent_messages = others * heads * kKeysAndValues,
          .peak_kv_bytes = problem.shape.kv_tokens * token};
}

StatedCosts ring_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const std::int64_t token = kv_bytes_per_token(problem);
  const std::int64_t kept_back = layout.positions(receiver_of(options, rank)).size();
  const std::int64_t slots = options.ranks > 1 ? 2 : 1;
  return {.sent_bytes = (problem.shape.kv_tokens - kept_back) * token,
          .sent_messages = (options.ranks - 1) * kKeysAndValues,
          .peak_kv_bytes = slots * layout.largest_chunk() * token};
}

StatedCosts ring_with_positions_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  StatedCosts costs = ring_costs(problem, options, rank);
  for (int owner = 0; owner < options.ranks; ++owner) {
    if (owner == receiver_of(options, rank)) continue;
    const std::size_t runs = layout.positions(owner).runs().size();
    costs.sent_bytes += static_cast<std::int64_t>(runs * sizeof(PositionRun));
    costs.sent_messages += 1;
  }
  return costs;
}

StatedCosts overlapped_ring_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const std::int64_t token = kv_bytes_per_token(problem), slots = slots_used(options);
  StatedCosts costs;
  for (const int owner : owners_sent(options, rank, slots)) {
    costs.sent_bytes += layout.positions(owner).size() * token;
    costs.sent_messages += kKeysAndValues;
  }
  costs.peak_kv_bytes = (layout.positions(rank).size() + slots * layout.largest_chunk()) * token;
  return costs;
}

StatedCosts overlapped_ring_with_positions_costs(const Problem& problem, const RunOptions& options,
                                                 int rank) {
  const Layout layout = kv_layout_of(problem, options);
  StatedCosts costs = overlapped_ring_costs(problem, options, rank);
  for (const int owner : owners_sent(options, rank, slots_used(options))) {
    const std::size_t runs = layout.positions(owner).runs().size();
    costs.sent_bytes += static_cast<std::int64_t>(runs * sizeof(PositionRun));
    costs.sent_messages += 1;
  }
  return costs;
}

StatedCosts bidirectional_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const std::int64_t token = kv_bytes_per_token(problem), ranks = options.ranks;
  const int step = options.direction == RingDirection::next ? 1 : -1;
  std::int64_t tokens = 0, slots = 0;
  for (const auto& [way, exchanges] : {std::pair{step, ranks / 2}, {-step, (ranks - 1) / 2}}) {
    for (std::int64_t away = 0; away < exchanges; ++away) {
      tokens += layout.positions(static_cast<int>((rank - way * away + ranks) % ranks)).size();
    }
    slots += std::min<std::int64_t>(exchanges, 2);
  }
  return {.sent_bytes = tokens * token,
          .sent_messages = (ranks - 1) * kKeysAndValues,
          .peak_kv_bytes = (layout.positions(rank).size() + slots * layout.largest_chunk()) * token,
          .exchanges = ranks / 2};
}

StatedCosts hierarchical_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const std::int64_t token = kv_bytes_per_token(problem);
  const int ranks = options.ranks, width = std::max(options.node_ranks, 1);
  const int first = rank / width * width, size = std::min(width, ranks - first);
  const int step = options.direction == RingDirection::next ? 1 : size - 1;
  const int receiver = (rank - first + step) % size;
  const std::int64_t other_nodes = (ranks + width - 1) / width - 1;
  std::int64_t tokens = other_nodes * layout.positions(rank).size(), chunks = other_nodes;
  for (int owner = 0; owner < ranks; ++owner) {
    if (owner % width % size == receiver) continue;  // enters the node there
    tokens += layout.positions(owner).size();
    ++chunks;
  }
  return {
      .sent_bytes = tokens * token,
      .sent_messages = chunks * kKeysAndValues,
      .peak_kv_bytes =
          (layout.positions(rank).size() + std::min(2, ranks - 1) * layout.largest_chunk()) * token,
      .node_messages = other_nodes * kKeysAndValues};
}

StatedCosts heads_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Shape& s = problem.shape;
  const std::int64_t group = s.q_heads / s.kv_heads, ranks = options.ranks;
  const std::int64_t mine = s.kv_heads * (rank + 1) / ranks - s.kv_heads * rank / ranks;
  const Layout queries = make_layout(options, s.q_tokens, options.q_layout);
  const std::int64_t q_rows = queries.positions(rank).size();
  const std::int64_t kv_rows = kv_layout_of(problem, options).positions(rank).size();
  const std::int64_t element = dtype_info(problem.dtype).bytes;
  const std::int64_t lse = problem.dtype == DType::f64 ? 8 : 4;
  const std::int64_t there = (s.kv_heads - mine) *
                             (group * q_rows * s.head_dim + kv_rows * (s.head_dim + s.v_dim)) *
                             element;
  const std::int64_t back = mine * group * (s.q_tokens - q_rows) * (s.v_dim * element + lse);
  return {.sent_bytes = s.batch * (there + back),
          .sent_messages = 5 * (ranks - 1),
          .peak_kv_bytes = s.batch * mine * s.kv_tokens * (s.head_dim + s.v_dim) * element,
          .exchanges = ranks > 1 ? 5 : 0};
}

StatedCosts needed_chunks_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout keys = kv_layout_of(problem, options);
  const NeedMatrix need = need_matrix(
      problem.mask, make_layout(options, problem.shape.q_tokens, options.q_layout), keys);
  const std::int64_t token = kv_bytes_per_token(problem), own = keys.positions(rank).size();
  const int ranks = options.ranks, step = options.direction == RingDirection::next ? 1 : -1;
  std::int64_t readers = 0, exchanges = 0;
  for (int hop = 1; hop < ranks; ++hop) {
    const int reader = (rank + (step * hop) + ranks) % ranks;
    const int owner = (rank - (step * hop) + ranks) % ranks;
    readers += need.needs(reader, rank);
    exchanges += need.needs(reader, rank) || need.needs(rank, owner);
  }
  const std::int64_t slots = std::min(1, ranks - 1) * keys.largest_chunk();
  return {.sent_bytes = readers * own * token,
          .sent_messages = readers * kKeysAndValues,
          .peak_kv_bytes = (own + slots) * token,
          .exchanges = exchanges};
}

StatedCosts compressed_wire_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const Shape& s = problem.shape;
  const std::int64_t token = kv_bytes_per_token(problem), ranks = options.ranks;
  const std::int64_t packed = s.batch * s.kv_heads * (s.head_dim + s.v_dim + 2 * 2);
  const std::int64_t kept_back = layout.positions(receiver_of(options, rank)).size();
  const std::int64_t arriving = ranks > 1 ? layout.largest_chunk() * (token + 2 * packed) : 0;
  return {.sent_bytes = (s.kv_tokens - kept_back) * packed,
          .sent_messages = (ranks - 1) * (kKeysAndValues + 1),
          .peak_kv_bytes = layout.positions(rank).size() * token + arriving,
          .exchanges = ranks - 1};
}

StatedCosts decode_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Shape& s = problem.shape;
  const std::int64_t heads = s.batch * s.q_heads;
  const std::int64_t asked = heads * s.head_dim * dtype_info(problem.dtype).bytes;
  const std::int64_t answered = heads * (2 + s.v_dim) * accumulator_bytes(problem.dtype);
  const Layout queries = make_layout(options, s.q_tokens, options.q_layout);
  const std::int64_t own = queries.positions(rank).size(), others = options.ranks - 1;
  std::int64_t askers = 0;
  for (int asker = 0; asker < options.ranks; ++asker) {
    askers += asker != rank && heads * queries.positions(asker).size() > 0;
  }
  const std::int64_t asks = heads * own > 0 ? others : 0;
  return {.sent_bytes = others * own * asked + (s.q_tokens - own) * answered,
          .sent_messages = asks + 2 * askers,
          .peak_kv_bytes =
              kv_layout_of(problem, options).positions(rank).size() * kv_bytes_per_token(problem),
          .exchanges = asks + askers > 0 ? 2 : 0};
}

}  // namespace ringlab::stages
