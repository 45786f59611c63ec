// A schedule: for every rank, the list of operations by which it meets all K/V chunks it needs.
//
// A schedule is data. The engine executes it (optimized/ring), the checker proves laws about it
// (schedule_check.h), closed forms count it (schedule_costs.h), pictures draw it. It knows nothing
// of threads, bytes or files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reference/core/kinds.h"

namespace ringlab {

/// broadcast: every owner sends its chunk to everybody who needs it; all chunks are held at once.
/// allgather: chunks go round the ring; all are held at once (context parallelism of Llama 3).
/// ring: neighbour to neighbour with a few slots (Liu, Zaharia & Abbeel 2023).
/// bidirectional: both ways at the same time, ceil((P-1)/2) exchanges.
/// double_ring: nodes of W ranks; a chunk enters each node once and goes round inside it
/// (after LoongTrain, Gu et al. 2024, and BurstAttention, Sun et al. 2024).
enum class ScheduleKind { broadcast, allgather, ring, bidirectional, double_ring };

/// Traits of a kind, all but the order in which ranks meet chunks (visit_order.h).
struct ScheduleTraits {
  std::string_view word = {};  ///< on the command line
  bool has_nodes = false;      ///< "word:W": nodes of W ranks
  bool holds_all = false;      ///< all chunks at once: slots are ignored
  bool from_owners = false;    ///< chunks come straight from their owners and are never passed on
  bool both_sides = false;     ///< chunks come from both neighbours; slots are per direction
};
constexpr ScheduleTraits schedule_traits(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::broadcast:
      return {.word = "broadcast", .holds_all = true, .from_owners = true};
    case ScheduleKind::allgather:
      return {.word = "allgather", .holds_all = true};
    case ScheduleKind::ring:
      return {.word = "ring"};
    case ScheduleKind::bidirectional:
      return {.word = "bidirectional", .both_sides = true};
    case ScheduleKind::double_ring:
      return {.word = "double", .has_nodes = true};
  }
  return {};
}
constexpr std::string_view schedule_word(ScheduleKind kind) { return schedule_traits(kind).word; }
inline constexpr auto kScheduleKinds = all_kinds<ScheduleKind, schedule_word>();

/// The direction of rings: chunks go to the rank with the next or the previous number.
enum class RingDirection { next, previous };

/// The schedule that is asked for: "broadcast", "allgather", "ring", "bidirectional", "double:W".
struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::ring;
  int node_ranks = 1;  ///< W of double:W; the last node may be smaller
  RingDirection direction = RingDirection::next;
  /// Chunks a rank can hold besides its own, per direction, at least 1. With one slot a chunk
  /// cannot be passed on while the next one comes in, so all chunks come straight from their
  /// owners. Kinds that hold all chunks ignore it.
  int slots = 2;
  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

/// Sets kind and node_ranks. Usage error for other words and for W < 1.
ScheduleSpec parse_schedule(std::string_view text);
std::string schedule_name(const ScheduleSpec& spec);  ///< "double:2"

/// The slot of a rank's own chunk, which stays where it is. Slots for other chunks are 0, 1, ….
inline constexpr int kHome = -1;
inline constexpr int kNobody = -1;

/// Gradient slots 0 and 1 take a rank's own parts in turn, 2 and 3 the sums that arrive; from this
/// one on, slots take the sums that come home, each its own, so that nobody waits to send one.
inline constexpr int kFirstHomeSum = 4;

/// Kinds of operation.
enum class Verb {
  post_receive,  ///< start receiving from `peer`
  wait_receive,  ///< until the message is there
  post_send,     ///< start sending to `peer`
  wait_send,     ///< until its slot may be overwritten, as far as this send is concerned
  compute,       ///< attend to the chunk in `slot`; backward: its dK, dV go to `gradient`
  add,           ///< gradient += addend
};

/// The data of an operation: K and V of `owner`'s chunk, in `slot`, or a sum of dK and dV of that
/// chunk, in `gradient`. Messages carry either, a compute is about a chunk, an add about gradients.
/// Headers of messages have these numbers.
enum class Payload : std::uint32_t { chunk, gradients };

/// Ranks execute their operations in order; posts return at once, waits block.
struct Operation {
  Verb verb = Verb::compute;
  Payload payload = Payload::chunk;
  int step = 0;  ///< 0 is the own chunk, i the i-th chunk that comes from elsewhere
  int owner = 0;
  int peer = kNobody;
  int slot = kHome;      ///< of K and V
  int gradient = kHome;  ///< gradient slot; kHome is where the own dK, dV are summed up
  int addend = kHome;    ///< add_gradient: the gradient slot that is added
  friend bool operator==(const Operation&, const Operation&) = default;
};

/// One rank's program.
struct RankSchedule {
  std::vector<Operation> operations;
  int slots = 0;           ///< K/V slots 0 … slots-1 are used
  int gradient_slots = 0;  ///< backward: gradient slots 0 … gradient_slots-1 are used
  friend bool operator==(const RankSchedule&, const RankSchedule&) = default;
};

enum class Pass { forward, backward };

struct Schedule {
  ScheduleSpec spec;
  Pass pass = Pass::forward;
  std::vector<RankSchedule> ranks;
};

/// Numbers of visible (query, key) pairs of one rank's queries and another's keys. They decide
/// which chunks travel where.
class NeedMatrix {
 public:
  explicit NeedMatrix(int ranks)
      : ranks_(ranks), pairs_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}
  int ranks() const { return ranks_; }
  std::int64_t pairs(int rank, int owner) const { return pairs_[at(rank, owner)]; }
  bool needs(int rank, int owner) const { return pairs(rank, owner) > 0; }
  void set(int rank, int owner, std::int64_t pairs) { pairs_[at(rank, owner)] = pairs; }

 private:
  std::size_t at(int rank, int owner) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(owner);
  }
  int ranks_;
  std::vector<std::int64_t> pairs_;
};

class Layout;
class Mask;
/// Exact counts for this mask and these layouts (of the same number of ranks).
/// O(ranks · queries) without bit matrices.
NeedMatrix need_matrix(const Mask& mask, const Layout& queries, const Layout& keys);

/// The programs of all ranks, as SchedulePlan (schedule_plan.h) writes them.
Schedule build_schedule(const ScheduleSpec& spec, const NeedMatrix& need, Pass pass);

}  // namespace ringlab
