// Memory of a run on its devices, known before any of it is allocated. No CUDA header is seen here.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "optimized/ring/streams/device_rank.h"
#include "reference/core/machine/machine_error.h"

namespace ringlab::ring {

/// Bytes that DeviceRank allocates and its kernels need besides, all of them together, without the
/// driver's rounding up.
template <class Element>
std::int64_t device_rank_bytes(const typename DeviceRank<Element>::Given& given) {
  const Shape& s = given.setting.problem.shape;
  const auto rank = static_cast<std::size_t>(given.rank);
  const std::int64_t queries = given.setting.queries.positions(given.rank).size();
  const std::int64_t keys = given.setting.keys.positions(given.rank).size();
  const std::int64_t rows = s.batch * s.q_heads * queries;
  const std::int64_t per_token = s.batch * s.kv_heads * (s.head_dim + s.v_dim);
  const auto narrow = static_cast<std::int64_t>(sizeof(Element));
  constexpr std::int64_t kWide = sizeof(float);

  // q, out, lse, the running state, what kernels need, the own chunk
  std::int64_t bytes = rows * (s.head_dim + s.v_dim) * narrow + rows * kWide;
  if (given.needs.state) {
    bytes += rows * (static_cast<std::int64_t>(sizeof(SoftmaxState<float>)) + s.v_dim * kWide);
  }
  bytes += given.needs.scratch_bytes;
  bytes += per_token * keys * narrow;

  // slots of chunks, which both passes use
  int slots = 0;
  std::int64_t most = 0;
  const auto take_in = [&](const StreamProgram& program) {
    slots = std::max(slots, program.ranks[rank].slots);
    most = std::max(most, most_tokens(program, given.setting.keys, given.rank));
  };
  take_in(given.programs.forward);
  if (given.programs.backward) take_in(*given.programs.backward);
  bytes += slots * per_token * most * narrow;

  // masks of the chunks that are attended to
  std::set<int> owners;
  for (const StreamOperation& operation : given.programs.forward.operations) {
    if (operation.action == StreamAction::attend && operation.rank == given.rank) {
      owners.insert(operation.owner);
    }
  }
  const auto tiles = [&](std::int32_t height) { return (queries + height - 1) / height; };
  bytes +=
      std::ssize(owners) *
      (queries * static_cast<std::int64_t>(sizeof(cuda::KeyRange)) +
       (tiles(given.kernels.forward_tile_queries) + tiles(given.kernels.backward_tile_queries)) *
           static_cast<std::int64_t>(sizeof(cuda::TileKeys)));
  if (!given.programs.backward) return bytes;

  // dout, delta, dq and its sum, dk and dv and theirs, slots of sums
  const StreamProgram& program = *given.programs.backward;
  bytes += rows * (s.v_dim + s.head_dim) * narrow + per_token * keys * narrow;
  if (given.kernels.delta_rows) bytes += rows * kWide;
  if (!given.needs.sums) return bytes;
  bytes += (rows * s.head_dim + per_token * keys) * kWide;
  const std::int64_t most_summed = most_tokens(program, given.setting.keys, given.rank);
  for (int slot = 0; slot < program.ranks[rank].gradient_slots; ++slot) {
    bytes += per_token * (slot < kFirstHomeSum ? most_summed : keys) * kWide;
  }
  return bytes;
}

/// Bytes that the ranks of a device need there.
struct DeviceNeed {
  int device = 0;
  int ranks = 0;
  std::int64_t bytes = 0;
};

/// MachineError that says how much the whole run needs, and how much is free, where that is less.
void check_device_memory(const DeviceNeed& need);

}  // namespace ringlab::ring
