#include "stages/common/costs.h"

#include <algorithm>
#include <vector>

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

StageCosts gather_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const std::int64_t token = kv_bytes_per_token(problem);
  const std::int64_t others = options.ranks - 1;
  const std::int64_t heads = problem.shape.batch * problem.shape.kv_heads;  // a message per head
  return {.sent_bytes = others * layout.positions(rank).size() * token,
          .sent_messages = others * heads * kKeysAndValues,
          .peak_kv_bytes = problem.shape.kv_tokens * token};
}

StageCosts ring_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const std::int64_t token = kv_bytes_per_token(problem);
  const std::int64_t kept_back = layout.positions(receiver_of(options, rank)).size();
  const std::int64_t slots = options.ranks > 1 ? 2 : 1;
  return {.sent_bytes = (problem.shape.kv_tokens - kept_back) * token,
          .sent_messages = (options.ranks - 1) * kKeysAndValues,
          .peak_kv_bytes = slots * layout.largest_chunk() * token};
}

StageCosts ring_with_positions_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  StageCosts costs = ring_costs(problem, options, rank);
  for (int owner = 0; owner < options.ranks; ++owner) {
    if (owner == receiver_of(options, rank)) continue;
    const std::size_t runs = layout.positions(owner).runs().size();
    costs.sent_bytes += static_cast<std::int64_t>(runs * sizeof(PositionRun));
    costs.sent_messages += 1;
  }
  return costs;
}

StageCosts overlapped_ring_costs(const Problem& problem, const RunOptions& options, int rank) {
  const Layout layout = kv_layout_of(problem, options);
  const std::int64_t token = kv_bytes_per_token(problem), slots = slots_used(options);
  StageCosts costs;
  for (const int owner : owners_sent(options, rank, slots)) {
    costs.sent_bytes += layout.positions(owner).size() * token;
    costs.sent_messages += kKeysAndValues;
  }
  costs.peak_kv_bytes = (layout.positions(rank).size() + slots * layout.largest_chunk()) * token;
  return costs;
}

StageCosts overlapped_ring_with_positions_costs(const Problem& problem, const RunOptions& options,
                                                int rank) {
  const Layout layout = kv_layout_of(problem, options);
  StageCosts costs = overlapped_ring_costs(problem, options, rank);
  for (const int owner : owners_sent(options, rank, slots_used(options))) {
    const std::size_t runs = layout.positions(owner).runs().size();
    costs.sent_bytes += static_cast<std::int64_t>(runs * sizeof(PositionRun));
    costs.sent_messages += 1;
  }
  return costs;
}

}  // namespace ringlab::stages
